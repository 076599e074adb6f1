// A module that needs a function which no library here has.
void missing_function();
extern "C" void worldsize_task();
extern "C" void worldsize_task() { missing_function(); }
