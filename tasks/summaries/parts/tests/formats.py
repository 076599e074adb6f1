"""Writes XSum's forms with Python's own packages, and compares what the program of the first argument
makes of them with what Python makes of them:
  formats.py <show_samples>"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import pyarrow
    import sentencepiece
except ImportError as error:
    print(f"SKIPPED: {error}; ./workbook test installs it where pip can")
    sys.exit(0)

PROGRAM = sys.argv[1]
WORDS = "the a rain office warning of wind roads said council closed heavy north Monday über 東京 ﬁne".split()
SOURCE, TARGET = 24, 10


def text(seed, length):
    return " ".join(WORDS[(seed * seed + 7 * i * i + i) % len(WORDS)] for i in range(length)) + "."


PAIRS = {name: [(text(base + i, 3 + i % 9), text(base + 2 * i, 2 + i % 5)) for i in range(count)]
         for name, base, count in (("train", 0, 23), ("validation", 100, 7), ("test", 200, 5))}


def write(path, pairs, make, kind=pyarrow.string(), rows=4):
    """rows: of each batch, as datasets writes a thousand of each"""
    schema = pyarrow.schema([("document", kind), ("summary", kind), ("id", pyarrow.string())])
    with make(str(path), schema) as writer:
        for start in range(0, len(pairs), rows):
            some = pairs[start:start + rows]
            columns = [pyarrow.array([pair[0] for pair in some], kind), pyarrow.array([pair[1] for pair in some], kind),
                       pyarrow.array([str(start + i) for i in range(len(some))])]
            writer.write_batch(pyarrow.record_batch(columns, schema=schema))


def lines(folder, config):
    folder.mkdir()
    for name, pairs in PAIRS.items():
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps({"document": document, "summary": summary}) + "\n" for document, summary in pairs))
    return samples(folder, config)


def samples(folder, config):
    program = subprocess.run([PROGRAM, "--task", "summaries", "--config", config, "--data", folder],
                             stdout=subprocess.PIPE, check=True)
    return json.loads(program.stdout)


def expected(model, prefix):
    def numbers(what, most):
        return model.encode(what)[:most - 1] + [model.eos_id()]
    told = {name: [[numbers(prefix + document, SOURCE), numbers(summary, TARGET)] for document, summary in pairs]
            for name, pairs in PAIRS.items()}
    return {"size": model.get_piece_size(), **told}


def main(folder):
    train = folder / "text.txt"
    train.write_text("\n".join(part for pair in PAIRS["train"] for part in pair) + "\nsummarize: summarize:\n")
    sentencepiece.SentencePieceTrainer.train(
        input=str(train), model_prefix=str(folder / "spiece"), vocab_size=90, hard_vocab_limit=False, num_threads=1,
        minloglevel=2, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))

    cache = folder / "cache"  # streams, one of them in parts
    cache.mkdir()
    write(cache / "xsum-train-00000-of-00002.arrow", PAIRS["train"][:13], pyarrow.ipc.new_stream)
    write(cache / "xsum-train-00001-of-00002.arrow", PAIRS["train"][13:], pyarrow.ipc.new_stream)
    write(cache / "xsum-validation.arrow", PAIRS["validation"], pyarrow.ipc.new_stream, pyarrow.large_string())
    write(cache / "xsum-test.arrow", PAIRS["test"], pyarrow.ipc.new_stream)
    saved = folder / "saved"  # files in folders
    for name, pairs in PAIRS.items():
        (saved / name).mkdir(parents=True)
        write(saved / name / "data-00000-of-00001.arrow", pairs, pyarrow.ipc.new_file)

    for prefix, said in (("summarize: ", ""), ("", "prefix: ''\n"), ("tl;dr: ", "prefix: 'tl;dr: '\n")):
        config = folder / "pieces.yaml"
        config.write_text(f"base: laptop\nsource_length: {SOURCE}\ntarget_length: {TARGET}\n"
                          f"tokenizer: {folder / 'spiece.model'}\n{said}")
        told = expected(model, prefix)
        for place in (cache, saved):
            assert samples(place, config) == told, (place, prefix)
    # Words are the same ones, whatever form they come in.
    config.write_text(f"base: laptop\nsource_length: {SOURCE}\ntarget_length: {TARGET}\n")
    told = lines(folder / "lines", config)
    assert told["size"] > len(WORDS)
    for place in (cache, saved):
        assert samples(place, config) == told, place
    print(f"{sum(map(len, PAIRS.values()))} pairs in three forms, {model.get_piece_size()} pieces")


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
