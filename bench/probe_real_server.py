"""`headway probe` on a real llama-server with a model of random weights: what it recovers, and what it predicts after calibration.

Server and probe have a core each. The model is a GGUF of 126 MB, made by the gguf package; run with
python bench/probe_real_server.py LLAMA_SERVER GGUF_PYTHON FOLDER, where GGUF_PYTHON is a python that has gguf and numpy. Prints, as medians
of three runs, the weight bytes of a step and the KV bytes of a token by the probe's step and this core's bandwidth, over those of the file;
then three further loads beside the calibrated prediction.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np

SEED, RUNS = 45, 3
LAYERS, HIDDEN, WIDTH, HEADS, VOCAB, CONTEXT = 8, 768, 2048, 12, 4096, 2048
SLOTS = 8
SERVER_CORE, PROBE_CORE = "0", "1"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
LOADS = ((200, 1), (200, 3), (350, 2))  # prompt, users: none of them is probed
MATRICES = (4 * HIDDEN * HIDDEN + 3 * HIDDEN * WIDTH) * LAYERS + HIDDEN * VOCAB  # of a step: layers and head
KV_BYTES = 2 * LAYERS * HIDDEN * 2
CONFIG = {"model_type": "llama", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "intermediate_size": WIDTH,
          "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "vocab_size": VOCAB, "max_position_embeddings": CONTEXT,
          "torch_dtype": "float16"}  # fmt: skip


def make(path):
    """A GGUF of random weights in 16 bits; its tokenizer knows letters alone."""
    import gguf

    draw = np.random.default_rng(SEED)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS), writer.add_context_length(CONTEXT), writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(WIDTH), writer.add_head_count(HEADS), writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5), writer.add_rope_dimension_count(HIDDEN // HEADS), writer.add_vocab_size(VOCAB)
    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    tokens += [(letter, kinds.NORMAL) for letter in "▁abcdefghijklmnopqrstuvwxyz0123456789"]
    tokens += [(f"▁w{place}", kinds.NORMAL) for place in range(VOCAB - len(tokens))]
    writer.add_tokenizer_model("llama"), writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([-float(place) for place in range(VOCAB)]), writer.add_token_types([kind for _, kind in tokens])
    writer.add_bos_token_id(1), writer.add_eos_token_id(2), writer.add_unk_token_id(0)

    def tensor(name, *shape):
        values = draw.standard_normal(shape, dtype=np.float32) / np.sqrt(shape[-1])
        writer.add_tensor(name, values.astype(np.float16) if len(shape) > 1 else np.ones(shape, np.float32))

    tensor("token_embd.weight", VOCAB, HIDDEN), tensor("output.weight", VOCAB, HIDDEN), tensor("output_norm.weight", HIDDEN)
    for layer in range(LAYERS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{layer}.{part}.weight", HIDDEN, HIDDEN)
        tensor(f"blk.{layer}.attn_norm.weight", HIDDEN), tensor(f"blk.{layer}.ffn_norm.weight", HIDDEN)
        tensor(f"blk.{layer}.ffn_gate.weight", WIDTH, HIDDEN), tensor(f"blk.{layer}.ffn_up.weight", WIDTH, HIDDEN)
        tensor(f"blk.{layer}.ffn_down.weight", HIDDEN, WIDTH)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()


def core():
    """Bytes of a matrix that the server's core multiplies a vector by per second: the best of many, by numpy on one thread."""
    matrix, vector, times = np.ones((6_000, 5_000), np.float32), np.ones(5_000, np.float32), []
    for _ in range(200):
        begin = time.perf_counter()
        matrix @ vector
        times.append(time.perf_counter() - begin)
    print(matrix.nbytes / min(times))


def headway(*words, check=True):
    """A command on the probe's core."""
    run = subprocess.run(["taskset", "-c", PROBE_CORE, sys.executable, "-m", "headway", *words], capture_output=True, text=True)
    if check and run.returncode:
        sys.exit(f"{' '.join(words)}: {run.stderr}")
    return run.stdout


def probe(url, out, prompts, concurrency, seed, output="32"):
    """Rows of a probe."""
    words = ("--prompt", prompts, "--output", output, "--concurrency", concurrency, "--budget", "600s", "--seed", str(seed))
    answer = json.loads(headway("probe", url, *words, "--out", str(out), "--replace", "-o", "json"))
    print(answer["answer"], *answer["notes"], sep="\n  ", flush=True)
    return answer["rows"]


def main(server, gguf_python, folder):
    """Start the server, probe it three times, then predict."""
    folder = Path(folder).resolve()
    model = folder / "random.gguf"
    if not model.exists():
        subprocess.run([gguf_python, __file__, "--make", str(model)], check=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    os.environ["XDG_CONFIG_HOME"] = str(folder / "own")
    for old in (folder / "own" / "headway").glob("*/*"):
        old.unlink()
    words = ["taskset", "-c", SERVER_CORE, sys.executable, "-m", "headway", "measure", "--quick", "--threads", "1", "--save", "one-core"]
    print(subprocess.run(words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True).stdout.split("\n")[0])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    slots = ["-c", str(CONTEXT * SLOTS), "--parallel", str(SLOTS), "--metrics"]
    words = [server, "-m", str(model), "--port", port, "-t", "1", "-tb", "1", *slots]
    log = (folder / "server.log").open("w")
    child = subprocess.Popen(["taskset", "-c", SERVER_CORE, *words], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{url}/health", timeout=1)
                break
            except OSError:
                time.sleep(0.5)
        measured(url, folder)
    finally:
        child.terminate()
        child.wait()


def rate():
    """Bandwidth of the server's core for weights, measured on it in a process of one thread."""
    words = ["taskset", "-c", SERVER_CORE, sys.executable, __file__, "--core"]
    return float(subprocess.run(words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True).stdout)


def measured(url, folder):
    """The probes, and what they say beside the file and the further loads."""
    files, rows, cores = [], [], []
    for number in range(RUNS):
        cores.append(rate())
        print(f"load of the machine {os.getloadavg()[0]:.1f}, weights read at {cores[-1] / 1e9:.1f} GB/s", flush=True)
        files.append(folder / f"probe{number}.json")
        rows.append(probe(url, folder / "alone.json", "64,1500", "1", 200 + number, "96")[0])
        probe(url, files[-1], "64,512", "1,2,4", SEED + number)
    bandwidth = max(cores)  # others on the machine only lower it
    known = {"weight bytes per step": ("step_alone_s", 2 * MATRICES), "KV bytes per token": ("step_alone_context_s", KV_BYTES)}
    for name, (key, true) in known.items():
        values = [(row[key] or 0) * bandwidth / true for row in rows]
        print(f"{name}, probed over true: {statistics.median(values):.2f} of {', '.join(f'{value:.2f}' for value in values)}")
    formats = ("--engine", "llamacpp", "--weights", "fp16", "--kv", "fp16")
    model = str(folder / "config.json")
    print(headway("calibrate", *map(str, files), "--on", "one-core", "--model", model, *formats, "--save", "real", "--replace"), flush=True)
    for prompt, users in LOADS:
        loads = [probe(url, folder / "load.json", str(prompt), str(users), 100 + run)[-1] for run in range(RUNS)]
        load = ("--batch", str(users), "--prompt", str(round(loads[0]["prompt"])), "--output", "32", "--calibration", "real")
        answer = json.loads(headway("serve", model, "--on", "one-core", *formats, *load, "-o", "json"))
        said, true = answer["rows"][0]["tpot_s"], statistics.median(load["mean_tpot_s"] for load in loads)
        print(f"prompt {prompt}, {users} users: TPOT {1000 * true:.1f} ms measured, {1000 * said:.1f} predicted: {said / true:.2f}")


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(sys.argv[2])
    elif sys.argv[1] == "--core":
        core()
    else:
        main(*sys.argv[1:4])
