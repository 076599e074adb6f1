// A module that is no task.
extern "C" void something_else();
extern "C" void something_else() {}
