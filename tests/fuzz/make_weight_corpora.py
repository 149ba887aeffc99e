"""Writes the corpora of pickle_fuzz.c and safetensors_fuzz.c: small valid files that reach every stage, and hand-made hostile ones, one fault each.

    python3 tests/fuzz/make_weight_corpora.py        (standard library only)

tests/unit/weights_hostile_test.c reads the same files and knows what the refusal of each must say.
"""
import json
import os
import pickle
import struct
import zipfile
import zlib

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(folder, name, data):
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    with open(os.path.join(HERE, folder, name), "wb") as f:
        f.write(data)


# ---------------------------------------------------------------- pickles, opcode by opcode

PROTO, STOP = b"\x80\x02", b"."
DICT = b"ccollections\nOrderedDict\n)R"


def text(s): return b"X" + struct.pack("<I", len(s.encode())) + s.encode()
def number(n): return b"\x8a\x08" + struct.pack("<q", n)
def numbers(*n): return b"(" + b"".join(number(x) for x in n) + b"t"


def storage(kind="FloatStorage", key="0", n=12, module="torch", where="cpu"):
    return b"(" + text("storage") + f"c{module}\n{kind}\n".encode() + text(key) + text(where) + number(n) + b"tQ"


def tensor(store=None, offset=0, size=(3, 4), stride=(4, 1), tail=b"\x89" + DICT):
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + (store or storage()) + number(offset) + numbers(*size) + numbers(*stride) + tail + b"tR"


def state(*pairs):
    return PROTO + b"}(" + b"".join(text(k) + v for k, v in pairs) + b"u" + STOP


def one(**k): return state(("w", tensor(**k)))


class Call:
    """Pickles as a call of os.system."""
    def __reduce__(self): return os.system, ("echo executed > /tmp/stencil-was-here",)


VALID = {
    "plain": one(),
    "dtypes": state(*[(k, tensor(storage(k, key=str(i)))) for i, k in enumerate(("HalfStorage", "BFloat16Storage", "DoubleStorage", "LongStorage", "BoolStorage"))]),
    "wrapped": PROTO + b"}(" + text("epoch") + b"K\x03" + text("model") + state(("w", tensor()), ("b", tensor(size=(4,), stride=(1,))))[2:-1] + b"u" + STOP,
    "shared": state(("a", tensor(offset=4, size=(2, 2), stride=(4, 1))), ("b", tensor(size=(4, 3), stride=(1, 4)))),
    "scalar_and_empty": state(("s", tensor(size=(), stride=(), offset=11)), ("e", tensor(size=(0, 4), stride=(4, 1), offset=12))),
    "parameter": state(("p", b"ctorch._utils\n_rebuild_parameter\n(" + tensor() + b"\x88" + DICT + b"tR")),
    "build": PROTO + DICT + b"(" + text("w") + tensor() + b"u}" + text("_metadata") + DICT + b"sb" + STOP,
    "memo": PROTO + b"}q\x00(" + text("w") + b"q\x01" + tensor() + b"r\x02\x00\x00\x00" + text("v") + b"j\x02\x00\x00\x00uh\x00b" + STOP,
    "metadata": one(tail=b"\x89" + DICT + b"}"),
    "others": PROTO + b"}(" + text("w") + tensor() + text("size") + b"ctorch\nSize\n" + numbers(3, 4) + b"\x85R" + text("type") + b"ctorch\nfloat32\n" + text("lr") + b"G" +
              struct.pack(">d", .1) + text("list") + b"](K\x01M\x02\x01J\xff\xff\xff\xffe" + text("huge") + b"\x8a\x0a" + b"\x01" * 10 + text("none") + b"N" + text("t") + b"\x88u" + STOP,
    "protocol4": b"\x80\x04\x95" + struct.pack("<Q", len(tensor()) + 8) + b"}\x94(\x8c\x01w" + tensor() + b"u" + STOP,
}

HOSTILE = {
    "call_protocol2": pickle.dumps({"w": Call()}, 2),
    "call_protocol4": pickle.dumps({"w": Call()}, 4),
    "call_inst": PROTO + b"}" + text("w") + b"(" + text("ls") + b"ios\nsystem\ns" + STOP,
    "call_obj": PROTO + b"}" + text("w") + b"(cos\nsystem\n" + text("ls") + b"os" + STOP,
    "eval": PROTO + b"cbuiltins\neval\n" + text("1") + b"\x85R" + STOP,
    "numpy": PROTO + b"}" + text("w") + b"cnumpy.core.multiarray\n_reconstruct\ns" + STOP,
    "torch_load": PROTO + b"}" + text("w") + b"ctorch\nload\n" + text("http://x") + b"\x85Rs" + STOP,
    "ext": PROTO + b"}" + text("w") + b"\x82\x01s" + STOP,
    "persid_text": PROTO + b"}" + text("w") + b"P0\ns" + STOP,
    "storage_called": PROTO + b"}" + text("w") + b"ctorch\nFloatStorage\nK\x05\x85Rs" + STOP,
    "rebuild_unknown": PROTO + b"}" + text("w") + b"ctorch._utils\n_rebuild_sparse_tensor\ns" + STOP,
    "beyond_storage": one(offset=1),
    "beyond_by_stride": one(size=(2, 2), stride=(11, 1)),
    "stride_overflow": one(size=(3, 4), stride=(1 << 62, 1 << 62)),
    "size_overflow": one(size=(1 << 32, 1 << 32), stride=(0, 0)),
    "repeated_view": one(size=(1000, 1000), stride=(0, 0)),
    "negative_size": one(size=(-3, 4)),
    "negative_offset": one(offset=-1),
    "negative_stride": one(stride=(-4, 1)),
    "rank9": one(size=(1,) * 9, stride=(1,) * 9),
    "ranks_differ": one(size=(3, 4), stride=(1,)),
    "float_size": state(("w", tensor()[:-1].replace(number(3), b"G" + b"\0" * 8) + b"R")),
    "no_storage": state(("w", b"ctorch._utils\n_rebuild_tensor_v2\n(" + text("storage") + number(0) + numbers(1) + numbers(1) + b"\x89" + DICT + b"tR")),
    "few_arguments": state(("w", b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage() + number(0) + b"tR")),
    "storage_of_module": state(("w", tensor(b"(" + text("module") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(4) + b"tQ"))),
    "storage_typed": state(("w", tensor(storage("TypedStorage", module="torch.storage")))),
    "storage_negative": state(("w", tensor(storage(n=-1)))),
    "storage_key_path": state(("w", tensor(storage(key="../../etc/passwd")))),
    "persid_no_tuple": PROTO + text("0") + b"Q" + STOP,
    "name_is_number": PROTO + b"}(K\x01" + tensor() + b"u" + STOP,
    "no_dict": PROTO + b"]" + tensor() + b"a" + STOP,
    "no_tensors": PROTO + b"}" + text("epoch") + b"K\x01s" + STOP,
    "empty": b"",
    "no_stop": PROTO + b"}",
    "after_stop": one() + b"}",
    "two_values": PROTO + b"}}" + STOP,
    "underflow": PROTO + b"s" + STOP,
    "mark_missing": PROTO + b"}u" + STOP,
    "mark_left": PROTO + b"(}" + STOP,
    "below_mark": PROTO + b"}(" + text("a") + b"\x86" + STOP,
    "odd_pairs": PROTO + b"}(" + text("a") + b"u" + STOP,
    "set_in_list": PROTO + b"]" + text("a") + text("b") + b"s" + STOP,
    "memo_empty": PROTO + b"h\x05" + STOP,
    "memo_far": PROTO + b"}r\xff\xff\xff\x7f" + STOP,
    "protocol5": b"\x80\x05}.",
    "text_long": PROTO + b"X\xff\xff\xff\xffabc" + STOP,
    "long_short": PROTO + b"\x8a\xffabc" + STOP,
    "frame_long": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff}.",
    "name_endless": PROTO + b"c" + b"a" * 200,
    "unknown_opcode": PROTO + b"\xff" + STOP,
    "deep": PROTO + b"]" * 20000 + b"a" * 19999 + STOP,
    "deep_tuple": PROTO + b"N" + b"\x85" * 20000 + STOP,
    "cycle": PROTO + b"}q\x00" + text("a") + b"h\x00s" + STOP,
    "cycle_model": PROTO + b"}q\x00" + text("model") + b"h\x00s" + STOP,
    "laughs": PROTO + b"]q\x00" + b"".join(b"](" + b"h\x00" * 30 + b"eq\x00" for _ in range(200)) + STOP,
    "build_callable": PROTO + b"ctorch\nSize\n}b" + STOP,
    "build_state_tuple": PROTO + b"})b" + STOP,
    "reduce_no_tuple": PROTO + b"ccollections\nOrderedDict\n]R" + STOP,
    "ordered_dict_arguments": PROTO + b"ccollections\nOrderedDict\n]\x85R" + STOP,
    "reduce_dict": PROTO + b"})R" + STOP,
}


# ---------------------------------------------------------------- archives

def archive(entries, folder="archive", compression=zipfile.ZIP_STORED, patch=None):
    path = os.path.join(HERE, ".tmp.zip")
    with zipfile.ZipFile(path, "w", compression) as z:
        for name, data in entries:
            z.writestr(zipfile.ZipInfo(f"{folder}/{name}" if folder else name), data, compression)
    with open(path, "rb") as f:
        data = f.read()
    os.remove(path)
    return patch(data) if patch else data


def usual(pkl=None, data=None, order=b"little"):
    floats = struct.pack("<12f", *range(12))
    return [("data.pkl", pkl or one()), ("byteorder", order), ("data/0", floats if data is None else data), ("version", b"3\n")]


def set_central(name, offset, value, size=4):
    """Changes a field of the central directory's record of an entry."""
    def patch(data):
        at = data.rindex(name) - 46
        assert data[at:at + 4] == b"PK\1\2"
        return data[:at + offset] + value.to_bytes(size, "little") + data[at + offset + size:]
    return patch


def set_local(name, offset, value, size=4):
    def patch(data):
        at = data.index(name) - 30
        assert data[at:at + 4] == b"PK\3\4"
        return data[:at + offset] + value.to_bytes(size, "little") + data[at + offset + size:]
    return patch


def set_end(offset, value, size=4):
    def patch(data):
        at = len(data) - 22
        return data[:at + offset] + value.to_bytes(size, "little") + data[at + offset + size:]
    return patch


def zip64(data):
    """The same archive with a zip64 end record, as for large files."""
    end = data[-22:]
    n, size, offset = struct.unpack("<HII", end[10:20])
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, n, n, size, offset)
    locator = struct.pack("<IIQI", 0x07064B50, 0, len(data) - 22, 1)
    return data[:-22] + record + locator + end[:8] + b"\xff\xff\xff\xff" + b"\xff" * 8 + b"\0\0"


def overlapping():
    """Entry `inner` lies inside the data of entry data/0."""
    inner = ("inner", b"xy")
    local = lambda d: d[d.index(b"archive/inner") - 30:d.index(b"archive/inner") + 15]
    data = archive(usual(data=local(archive(usual() + [inner]))) + [inner])
    return set_central(b"archive/inner", 42, data.index(b"archive/inner") - 30)(data)


def bomb():
    n = 64 << 20                                                # 64 MiB of zeros in 64 KiB
    return archive([("data.pkl", one()), ("data/0", bytes(n))], compression=zipfile.ZIP_DEFLATED)


def lying_bomb():
    """A storage that claims more than deflate could ever give."""
    big = 1 << 40
    data = archive(usual(one(store=storage(n=big // 4))), compression=zipfile.ZIP_DEFLATED)
    return set_central(b"archive/data/0", 24, 0xFFFFFFFE)(data)


ARCHIVES = {
    "usual": archive(usual()),
    "deflated": archive(usual(), compression=zipfile.ZIP_DEFLATED),
    "zip64": archive(usual(), patch=zip64),
    "no_byteorder": archive([e for e in usual() if e[0] != "byteorder"]),
}
HOSTILE_ARCHIVES = {
    "bomb": bomb(),
    "lying_bomb": lying_bomb(),
    "big_endian": archive(usual(order=b"big")),
    "byteorder_long": archive(usual(order=b"little" * 100)),
    "torchscript": archive(usual() + [("constants.pkl", b"\x80\x02).")]),
    "no_pickle": archive([("data/0", b"1234")]),
    "no_folder": archive(usual(), folder=""),
    "outside": archive(usual() + [("../evil", b"x")], folder="archive/.."),
    "stray": archive([(("archive/" if n != "version" else "") + n, d) for n, d in usual()], folder=""),
    "twice": archive(usual() + [("data/0", b"x")]),
    "storage_missing": archive([e for e in usual() if e[0] != "data/0"]),
    "storage_short": archive(usual(data=b"1234")),
    "storage_long": archive(usual(data=b"1" * 100)),
    "call": archive(usual(HOSTILE["call_protocol2"])),
    "tensor_twice": archive(usual(state(("w", tensor()), ("w", tensor())))),
    "name_newline": archive(usual(state(("a\nb", tensor())))),
    "name_nul": archive(usual(state(("a\0b", tensor())))),
    "name_long": archive(usual(state(("a" * 600, tensor())))),
    "cut": archive(usual())[:-30],
    "cut_early": archive(usual())[:200],
    "overlap": overlapping(),
    "crc": archive(usual(), compression=zipfile.ZIP_DEFLATED, patch=set_central(b"archive/data.pkl", 16, 1)),
    "encrypted": archive(usual(), patch=set_central(b"archive/data/0", 8, 1, 2)),
    "method": archive(usual(), patch=set_central(b"archive/data/0", 10, 14, 2)),
    "methods_differ": archive(usual(), patch=set_local(b"archive/data/0", 8, 8, 2)),
    "sizes_differ": archive(usual(), patch=set_local(b"archive/data/0", 18, 47)),
    "names_differ": archive(usual(), patch=lambda d: d.replace(b"archive/version", b"archive/versioo", 1)),
    "header_far": archive(usual(), patch=set_central(b"archive/data/0", 42, 0xFFFFFFF0)),
    "size_far": archive(usual(), patch=lambda d: set_central(b"archive/data/0", 24, 0x7FFFFFFF)(set_central(b"archive/data/0", 20, 0x7FFFFFFF)(d))),
    "entries_many": archive(usual(), patch=lambda d: set_end(10, 60000, 2)(set_end(8, 60000, 2)(d))),
    "entries_few": archive(usual(), patch=lambda d: set_end(10, 2, 2)(set_end(8, 2, 2)(d))),
    "directory_far": archive(usual(), patch=set_end(16, 0xFFFFFF00)),
    "split": archive(usual(), patch=set_end(4, 1, 2)),
    "zip64_far": zip64(archive(usual())).replace(struct.pack("<IIQ", 0x07064B50, 0, len(archive(usual())) - 22), struct.pack("<IIQ", 0x07064B50, 0, 1 << 60)),
    "deflate_broken": archive(usual(), compression=zipfile.ZIP_DEFLATED,
                              patch=lambda d: d.replace(zlib.compress(one())[2:-4][:6], b"\xff" * 6) if zlib.compress(one())[2:-4][:6] in d else d[:60] + b"\xff" * 6 + d[66:]),
}


# ---------------------------------------------------------------- safetensors

def safetensors(header, data=b"", length=None):
    h = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(h) if length is None else length) + h + data


def t(begin, end, shape=(2, 2), dtype="F32"): return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


# Names that show the layout, so that sizes are read from shapes.
MARKS_META = {
    "detector.backbone.vision_backbone.trunk.ln_pre.weight": t(0, 96, (24,)), "detector.geometry_encoder.cls_embed.weight": t(96, 160, (1, 16)),
    "detector.transformer.decoder.presence_token.weight": t(160, 224, (1, 16)),
    "detector.backbone.vision_backbone.trunk.blocks.0.attn.freqs_cis": t(224, 352, (4, 4), "C64"),
    "detector.backbone.vision_backbone.trunk.blocks.1.attn.freqs_cis": t(352, 640, (9, 4), "C64"),
}
MARKS_HF = {
    "vision_encoder.backbone.layer_norm.weight": t(0, 48, (24,), "F16"), "geometry_encoder.cls_embed.weight": t(48, 80, (1, 16), "BF16"),
    "detr_decoder.presence_token.weight": t(80, 112, (1, 16), "F16"), "text_encoder.embeddings.token_embedding.weight": t(112, 112, (0, 16), "F16"),
}
SAFE = {
    "two": safetensors({"__metadata__": {"format": "pt"}, "a": t(0, 16), "b": t(16, 40, (3,), "F64")}, bytes(40)),
    "spaces": safetensors(json.dumps({"a": t(0, 4, (), "F32")}).encode() + b"   ", bytes(4)),
    "empty_tensor": safetensors({"a": t(0, 0, (0, 5)), "b": t(0, 2, (1,), "F16")}, bytes(2)),
    "no_tensors": safetensors({}),
    "dtypes": safetensors({d: t(8 * i, 8 * i + 8, (8 // s,), d) for i, (d, s) in enumerate(
        {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1, "C64": 8}.items())}, bytes(14 * 8)),
    "int8": safetensors({"__metadata__": {"stencil": '{"kind":"int8 weights","int8":[{"layer":"w"}],"kept":[]}'}, "w.weight_scale": t(0, 8, (2,), "F32"),
                         "w.weight_smooth": t(8, 20, (1, 3), "F32"), "w.weight": t(20, 26, (2, 3), "I8")}, struct.pack("<5f6b", .5, .25, 1, 2, 4, 127, -127, 0, 1, 2, 3)),
    "marks_meta": safetensors(MARKS_META, bytes(640)),
    "marks_hf": safetensors(MARKS_HF, bytes(112)),
}
HOSTILE_SAFE = {
    "short": b"\x05\0\0",
    "header_huge": safetensors({}, length=(100 << 20) + 1),
    "header_beyond": safetensors({}, length=1000),
    "header_wraps": safetensors({}, length=(1 << 64) - 4),
    "no_object": safetensors(b"[1]"),
    "not_json": safetensors(b"{\"a\":}"),
    "duplicate": safetensors(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"),
    "duplicate_key": safetensors(b'{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}', b"x"),
    "trailing": safetensors(b'{}x'),
    "trailing_nul": safetensors(b'{}\0'),
    "trailing_newline": safetensors(b'{}\n'),
    "leading_space": safetensors(b' {}'),
    "overlap": safetensors({"a": t(0, 16), "b": t(8, 24)}, bytes(24)),
    "same_bytes": safetensors({"a": t(0, 16), "b": t(0, 16)}, bytes(16)),
    "gap": safetensors({"a": t(0, 16), "b": t(20, 36)}, bytes(36)),
    "gap_at_start": safetensors({"a": t(4, 20)}, bytes(20)),
    "unused_end": safetensors({"a": t(0, 16)}, bytes(20)),
    "beyond": safetensors({"a": t(0, 16)}, bytes(15)),
    "size_wrong": safetensors({"a": t(0, 12)}, bytes(12)),
    "backwards": safetensors({"a": t(16, 0)}, bytes(16)),
    "offset_negative": safetensors({"a": t(-16, 0)}, bytes(16)),
    "offset_real": safetensors({"a": t(0, 16.0)}, bytes(16)),
    "offset_overflow": safetensors(b'{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,18446744073709551632]}}', bytes(16)),
    "offset_largest": safetensors(b'{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[9223372036854775792,9223372036854775807]}}', bytes(16)),
    "offsets_three": safetensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16, 16]}}, bytes(16)),
    "shape_negative": safetensors({"a": t(0, 16, (-2, -2))}, bytes(16)),
    "shape_huge": safetensors({"a": t(0, 16, (1 << 62, 4))}, bytes(16)),
    "shape_wraps": safetensors({"a": t(0, 0, (1 << 32, 1 << 32))}),
    "shape_wraps_type": safetensors({"a": t(0, 0, (1 << 62,), "F32")}),
    "shape_text": safetensors({"a": t(0, 16, ("2", 2))}, bytes(16)),
    "shape_rank9": safetensors({"a": t(0, 4, (1,) * 9)}, bytes(4)),
    "no_dtype": safetensors({"a": {"shape": [1], "data_offsets": [0, 4], "x": 1}}, bytes(4)),
    "dtype_unknown": safetensors({"a": t(0, 4, (4,), "F8_E4M3")}, bytes(4)),
    "dtype_number": safetensors({"a": {"dtype": 5, "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "key_more": safetensors({"a": dict(t(0, 16), extra=1)}, bytes(16)),
    "key_less": safetensors({"a": {"dtype": "F32", "shape": [1]}}, bytes(4)),
    "tensor_number": safetensors({"a": 5}),
    "metadata_number": safetensors({"__metadata__": 5}),
    "name_empty": safetensors({"": t(0, 16)}, bytes(16)),
    "name_control": safetensors({"a\x1b[2J": t(0, 16)}, bytes(16)),
    "name_long": safetensors({"a" * 600: t(0, 16)}, bytes(16)),
    "name_broken_utf8": safetensors(b'{"\xff\xfe":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"),
    "deep": safetensors(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"),
}


def main():
    for name, data in VALID.items(): write("pickle", f"valid_{name}.pkl", data)
    for name, data in HOSTILE.items(): write("pickle", f"bad_{name}.pkl", data)
    for name, data in ARCHIVES.items(): write("pickle", f"valid_{name}.zip", data)
    for name, data in HOSTILE_ARCHIVES.items(): write("pickle", f"bad_{name}.zip", data)
    for name, data in SAFE.items(): write("safetensors", f"valid_{name}", data)
    for name, data in HOSTILE_SAFE.items(): write("safetensors", f"bad_{name}", data)


main()
