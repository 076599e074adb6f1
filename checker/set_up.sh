# shellcheck shell=bash
# What ./workbook does the first time, or after an interruption: packages, compiler, LibTorch, CMake,
# checker. It is sourced with root, log, venv, build, config (cpu, cuda or sanitize), tests (ON or OFF),
# python (ON, OFF or torchrun), prefixes (of CMAKE_PREFIX_PATH), torchrun_runs, fail and say.
# shellcheck disable=SC2154
torch=2.11.0 options=() used_by_tests=() beside=()
# Python's torch loads these libraries even where no GPU is; torchrun needs nothing else.
torchrun_needs=(typing_extensions 'cuda-toolkit[cublas,cufft,cufile,curand,cusparse]==13.0.2' nvidia-cudnn-cu13==9.19.0.56
  nvidia-cusparselt-cu13==0.8.0 nvidia-nccl-cu13==2.28.9 nvidia-nvshmem-cu13==3.4.5)
# What the rest of Python's torch imports, and the tests' scripts. Triton, most of the whole wheel's size, is for GPUs.
python_needs=(numpy safetensors filelock fsspec jinja2 networkx setuptools sympy)

stage() {  # stage TITLE COMMAND...: one calm line; what the command says goes to the log
  local title=$1 start=$SECONDS result='done'; shift
  if [ -t 2 ]; then printf '  %s ...' "$title" >&2; fi
  { echo "== $title: $*"; "$@"; } >>"$log" 2>&1 </dev/null || result=failed
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
  say "$title: $result ($((SECONDS - start)) s)"
  [ $result = 'done' ]
}
explain() {  # explain WHAT FIX: why the last stage failed, as far as its output tells
  local last; last=$(tac "$log" | sed '/^== /q' | tac)
  case $last in
    *'No space left'*) fail "the disk is full. Fix: free some space (df -h '$root'), then run this again." ;;
    *'emporary failure'*|*'ould not resolve'*|*unreachable*|*onnection*|*'from versions: none'*|*roxy*) fail "$1: no network. Fix: $2" ;;
    *) tail -n 15 "$log" >&2; fail "$1. Fix: $2 (The whole output is in $log.)" ;;
  esac
}
do_beside() {  # do_beside NAME COMMAND...: while the set-up goes on, with a log of its own
  local log=$log.$1
  "${@:2}" 2>"$log.said" &
  beside+=("$!:$log.said")
}
await_beside() {
  local one failed=''
  for one in ${beside[@]+"${beside[@]}"}; do
    wait "${one%%:*}" || failed=yes
    cat "${one#*:}" >&2
  done
  if [ -n "$failed" ]; then exit 1; fi
}
enough_space() {
  local free; free=$(df -Pk "$root" | awk 'NR == 2 {print int($4 / 1048576)}')
  [ "$free" -ge "$1" ] || fail "$1 GB of free disk space are needed in $root, but only $free are free." \
    "Fix: free some space, or move the project to another disk."
}
at_least() { [ "$(printf '%s\n' "$@" | sort -V | head -n 1)" = "$2" ]; }  # at_least VERSION LEAST
find_compiler() {
  local name version least names=(clang++ clang++-{21..14} g++ g++-{16..12})
  if [ -n "${CXX:-}" ]; then names=("$CXX"); fi
  for name in "${names[@]}"; do
    version=$("$name" -dumpfullversion -dumpversion 2>/dev/null) || continue
    if "$name" --version | grep -q clang; then least=14; else least=12; fi
    # A compiler may be new and yet lack its standard library.
    if at_least "$version" $least && echo '#include <concepts>' | "$name" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; then echo "$name"; return; fi
  done
  local problem="no C++20 compiler found"
  if [ -n "${CXX:-}" ]; then problem="$CXX is not a usable C++20 compiler"; fi
  fail "$problem; GCC 12 or clang 14 is the minimum." \
    "Fix: sudo apt-get install clang; on a cluster: module load <a newer compiler>; or CXX=<compiler> ./workbook start"
}
find_python() {
  local name
  for name in python3 python3.{14..10}; do
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then echo "$name"; return; fi
  done
  fail "no Python 3.10 or newer with venv found. Fix: sudo apt-get install python3-venv; on a cluster: module load Python"
}
apt_install() {  # apt_install TITLE PACKAGE...
  stage "$1" env DEBIAN_FRONTEND=noninteractive \
    sh -c 'apt-get update && apt-get install -y --no-install-recommends "$@"' apt "${@:2}" || say "continuing without ${*:2}"
}
apt_missing() {  # apt_missing PACKAGE...: those that are not installed, into the array missing
  local name; missing=()
  for name in "$@"; do
    dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
}
apt_packages() {
  command -v apt-get >/dev/null || return 0
  local missing names=(clang cmake ninja-build python3-venv libcxxopts-dev libyaml-cpp-dev nlohmann-json3-dev libpugixml-dev libgloo-dev libsqlite3-dev libarchive-dev bubblewrap)
  if [ "$config" = sanitize ]; then  # clang's sanitizers are a package of their own, named by version
    local version; version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
    names+=("libclang-rt-${version:-14}-dev")
  fi
  if [ "$tests" = ON ]; then
    names+=(libgtest-dev libgmock-dev libbenchmark-dev libhdf5-dev libturbojpeg0-dev libsentencepiece-dev)
  fi
  apt_missing "${names[@]}" ${used_by_tests[@]+"${used_by_tests[@]}"}
  if [ ${#missing[@]} != 0 ] && [ "$(id -u)" != 0 ]; then
    say "continuing without these, because only root can install them: sudo apt-get install ${missing[*]}"
    return 0
  fi
  apt_missing "${names[@]}"
  if [ ${#missing[@]} != 0 ]; then apt_install "installing ${#missing[@]} packages with apt" "${missing[@]}"; fi
  apt_missing ${used_by_tests[@]+"${used_by_tests[@]}"}
  if [ ${#missing[@]} != 0 ]; then
    do_beside packages apt_install "installing ${#missing[@]} packages for the tests" "${missing[@]}"
  fi
}
in_venv() {  # in_venv MARK TITLE PACKAGE...: pip, once for each mark; a .venv without marks is made again
  local mark=$venv/.has-$1 title=$2 python; shift 2
  if [ -e "$mark" ]; then return 0; fi
  if ! compgen -G "$venv/.has-*" >/dev/null; then
    python=$(find_python) || exit 1
    rm -rf "$venv"
    stage "making .venv" "$python" -m venv "$venv" || explain "Python cannot make .venv" "sudo apt-get install python3-venv, then run this again."
  fi
  stage "$title" "$venv/bin/python3" -m pip install --no-compile --disable-pip-version-check "$@" ||
    explain "$title failed" "run this again with a network; or bring LibTorch $torch and run CMAKE_PREFIX_PATH=<folder that holds torch/> ./workbook start"
  touch "$mark"
}
build_tools() {
  if at_least "$(cmake --version 2>/dev/null | awk 'NR == 1 {print $3}')" 3.24 && command -v ninja >/dev/null; then return 0; fi
  in_venv tools "installing cmake and ninja from PyPI" 'cmake<5' ninja
  export PATH=$venv/bin:$PATH
}
is_libtorch() {
  local version=$1/include/torch/headeronly/version.h library=torch_cpu
  if [ "$config" = cuda ]; then library=torch_cuda; fi
  [ -e "$1/lib/lib$library.so" ] && [ "$(awk '/define TORCH_VERSION_(MAJOR|MINOR|PATCH) /{v = v "." $3} END {print v}' "$version" 2>/dev/null)" = .$torch ]
}
libtorch() {
  local place theirs
  theirs=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null)
  for place in ${prefixes[@]+"${prefixes[@]}" "${prefixes[@]/%//torch}"} "$theirs"; do
    if is_libtorch "$place"; then return 0; fi
  done
  if [ -n "$theirs" ] && [ "${theirs#"$venv"}" = "$theirs" ]; then say "python3's torch is not LibTorch $torch, so that goes into .venv"; fi
  # C++ programs for CPUs need only a third of the whole wheel.
  if [ "$config" = cuda ]; then
    [ -e "$venv/.has-whole" ] || enough_space 9
    in_venv whole "installing LibTorch $torch (4.5 GB)" torch==$torch numpy safetensors
  elif ! [ -e "$venv/.has-whole" ]; then
    if [ "$tests" = ON ] && ! [ -e "$venv/.has-python" ]; then enough_space 9; fi
    cpu_torch
  fi
}
cpu_torch() {
  [ -e "$venv/.has-cpu" ] || enough_space 4
  in_venv cpu "installing LibTorch $torch (1.3 GB)" --no-deps torch==$torch nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85
}
cuda_toolkit() {
  if nvcc --version 2>/dev/null | grep -q 'release 13\.'; then return 0; fi
  in_venv nvcc "installing the CUDA 13.0 toolkit" 'cuda-toolkit[nvcc,cccl]==13.0.2' nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
  local kit library
  for kit in "$venv"/lib/python3*/site-packages/nvidia/cu13; do :; done
  # The wheels lack what a linker looks for: names without versions, in lib64.
  for library in "$kit"/lib/lib*.so.*; do ln -sf "${library##*/}" "${library%%.so.*}.so"; done
  ln -sfn lib "$kit/lib64"
  options+=("-DCUDAToolkit_ROOT=$kit" "-DCMAKE_CUDA_COMPILER=$kit/bin/nvcc")
}
working_torchrun() {
  if torchrun_runs; then return 0; fi
  enough_space 4
  cpu_torch
  in_venv torchrun "installing what torchrun needs (2.2 GB)" "${torchrun_needs[@]}"
  torchrun_runs || fail "torchrun does not start: $("$venv/bin/torchrun" --help 2>&1 | tail -n 1)" \
    "Fix: delete $venv, then run this again."
}
python_for_tests() {
  # LibTorch from elsewhere comes with the Python that it belongs to.
  if [ -e "$venv/.has-cpu" ] && ! [ -e "$venv/.has-whole" ]; then
    in_venv torchrun "installing what torchrun needs (2.2 GB)" "${torchrun_needs[@]}"
    in_venv python "installing what Python's torch needs" "${python_needs[@]}"
  fi
  # Without them the slides and TensorBoard's files are not tested, and their tests say so.
  (slides_tools) || say "continuing without the slides"
  (in_venv tensorboard "installing TensorBoard" tensorboard==2.20.0) || say "continuing without TensorBoard"
}
slides_tools() {  # Sphinx and what belongs to it; again where a newer course needs something else
  if [ "$root/slides/requirements.txt" -nt "$venv/.has-slides" ]; then rm -f "$venv/.has-slides"; fi
  in_venv slides "installing what builds the slides" -r "$root/slides/requirements.txt"
}
set_up() {
  say "setting up build/$config, once (its tools write to build/setup.log)"
  rm -f "$build/set-up"
  trap wait EXIT  # what runs beside is never left behind
  enough_space 2
  if [ "$tests" = ON ]; then
    used_by_tests=(clang-format clang-tidy shellcheck iproute2 procps python3-jsonschema chromium)
    # Job scripts are tried on a Slurm of their own; one that a site brought is left as it is.
    command -v sbatch >/dev/null || used_by_tests+=(slurm-wlm munge)
  fi
  apt_packages
  local compiler; compiler=$(find_compiler) || exit 1
  build_tools
  libtorch
  if [ "$python" = torchrun ]; then working_torchrun; fi
  if [ "$tests" = ON ] && [ "$config" != sanitize ]; then
    # Arrow's C++ library comes with pyarrow; Python's sentencepiece is what ours is compared with.
    (in_venv formats "installing Arrow and SentencePiece" --no-deps pyarrow==22.0.0 sentencepiece==0.2.0) ||
      say "continuing without Arrow"
  fi
  if [ "$config" = cuda ]; then cuda_toolkit; fi
  # Tests only run this: it comes while the checker is built.
  if [ "$tests" = ON ]; then do_beside python python_for_tests; fi
  if [ "$tests" = ON ]; then options+=(-DWORLDSIZE_TESTS=ON -DWORLDSIZE_BENCHMARKS=ON); fi
  if [ ${#prefixes[@]} != 0 ]; then options+=("-DCMAKE_PREFIX_PATH=$(IFS=';'; echo "${prefixes[*]}")"); fi
  local configure=(cmake -S "$root" --preset "$config" -Wno-dev ${options[@]+"${options[@]}"})
  # What an interrupted or different set-up left in the cache is tried as it is, then thrown away.
  if ! [ -e "$build/build.ninja" ] || ! stage "configuring build/$config again" "${configure[@]}"; then
    stage "configuring build/$config" "${configure[@]}" --fresh "-DCMAKE_CXX_COMPILER=$compiler" ||
      explain "CMake cannot configure the project" "see the lines above."
  fi
  stage "building the checker" cmake --build "$build" --target checker || explain "the checker does not build" "see the lines above."
  await_beside
  if [ "$config" != sanitize ]; then ln -sfn "$config/compile_commands.json" "$root/build/compile_commands.json"; fi
  echo "tests $tests" >"$build/set-up"
}
