#include "verbs/verbs.hpp"

int main(int argc, char** argv) { return checker::dispatch({argv + 1, argv + argc}); }
