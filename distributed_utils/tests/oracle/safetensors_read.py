"""Prints what the safetensors package reads from a file; null if there is no such package."""
import json
import sys

try:
    from safetensors import safe_open
except ImportError:
    print("null")
    sys.exit()

result = {"tensors": {}}
with safe_open(sys.argv[1], framework="pt") as file:
    result["metadata"] = file.metadata()
    for name in file.keys():
        tensor = file.get_tensor(name)
        result["tensors"][name] = dict(shape=list(tensor.shape), values=tensor.double().flatten().tolist())
print(json.dumps(result))
