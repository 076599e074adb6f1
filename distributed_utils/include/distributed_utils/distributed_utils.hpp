#pragma once
/// Everything of the library at once.
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/print.hpp"
#include "distributed_utils/process_group.hpp"
#include "distributed_utils/safetensors.hpp"
#include "distributed_utils/sampler.hpp"
#include "distributed_utils/save.hpp"
#include "distributed_utils/setup.hpp"
