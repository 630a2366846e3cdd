"""Launch lines: the command that realises a layout on vLLM, SGLang or TensorRT-LLM, or why the engine cannot.

One file for each engine; flags and the version they were read from are in data/engines. Entry: `launch.launch`.
"""
