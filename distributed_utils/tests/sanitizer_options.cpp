// Asked by the address sanitizer when a program starts. What is never freed is no finding here:
// torch keeps its registries until the very end, and the default process group is leaked on
// purpose.
extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
