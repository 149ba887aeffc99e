/* weights_hostile_test.c: files that lie. Every file of the corpora whose name begins with bad_ is refused for the
 * reason it was made for (tests/fuzz/ make_weight_corpora.py), every other is accepted, and what PyTorch itself
 * wrote (tests/reference/make_weight_files.py) is read to the bit or refused by name. Then cut-off files, flipped
 * bits, shards and folders that do not fit together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "weights/checkpoint.h"
#include "weights/pickle.h"
#include "weights/weights.h"
#include "weights_model.h"

static const struct {
    const char *file;
    st_status status;
    const char *message;
} refusals[] = {
    { "fuzz/corpus/pickle/bad_after_stop.pkl", ST_ERR_FORMAT, "pickle, byte 188: bytes follow the end of the pickle" },
    { "fuzz/corpus/pickle/bad_below_mark.pkl", ST_ERR_FORMAT, "pickle, byte 10: the stack has too few values" },
    { "fuzz/corpus/pickle/bad_beyond_by_stride.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor that reaches beyond its storage" },
    { "fuzz/corpus/pickle/bad_beyond_storage.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor that reaches beyond its storage" },
    { "fuzz/corpus/pickle/bad_big_endian.zip", ST_ERR_UNSUPPORTED, "its byteorder is \"big\", expected \"little\"" },
    { "fuzz/corpus/pickle/bad_bomb.zip", ST_ERR_FORMAT,
      "tensor \"w\": entry data/0 has 67108864 bytes, but the pickle says 12 elements of F32" },
    { "fuzz/corpus/pickle/bad_build_callable.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 15: BUILD of something other than a dict's or tensor's attributes" },
    { "fuzz/corpus/pickle/bad_build_state_tuple.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 4: BUILD of something other than a dict's or tensor's attributes" },
    { "fuzz/corpus/pickle/bad_byteorder_long.zip", ST_ERR_FORMAT,
      "its entry \"byteorder\" has 600 bytes, expected \"little\"" },
    { "fuzz/corpus/pickle/bad_call.zip", ST_ERR_UNSUPPORTED,
      "pickle, byte 13: it names \"posix system\", which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_call_inst.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 17: it names \"os system\", which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_call_obj.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 10: it names \"os system\", which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_call_protocol2.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 13: it names \"posix system\", which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_call_protocol4.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 34: it names \"posix system\", which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_crc.zip", ST_ERR_FORMAT,
      "\"data.pkl\": its deflated bytes do not expand to the 189 bytes and checksum they should have" },
    { "fuzz/corpus/pickle/bad_cut.zip", ST_ERR_FORMAT, "the zip archive has no end record (cut off?)" },
    { "fuzz/corpus/pickle/bad_cut_early.zip", ST_ERR_FORMAT, "the zip archive has no end record (cut off?)" },
    { "fuzz/corpus/pickle/bad_cycle.pkl", ST_ERR_FORMAT,
      "the pickle holds no tensors at its top or under \"model\"; its first key is \"a\"" },
    { "fuzz/corpus/pickle/bad_cycle_model.pkl", ST_ERR_FORMAT,
      "the pickle holds no tensors at its top or under \"model\"; its first key is \"model\"" },
    { "fuzz/corpus/pickle/bad_deep.pkl", ST_ERR_UNSUPPORTED, "the pickle holds list, expected a dict of tensors" },
    { "fuzz/corpus/pickle/bad_deep_tuple.pkl", ST_ERR_UNSUPPORTED,
      "the pickle holds tuple, expected a dict of tensors" },
    { "fuzz/corpus/pickle/bad_deflate_broken.zip", ST_ERR_FORMAT,
      "\"data.pkl\": its deflated bytes do not expand to the 189 bytes and checksum they should have" },
    { "fuzz/corpus/pickle/bad_directory_far.zip", ST_ERR_FORMAT,
      "the zip directory (246 bytes at 4294967040) does not end at byte 673, before the end record" },
    { "fuzz/corpus/pickle/bad_empty.pkl", ST_ERR_FORMAT, "pickle, byte 0: the pickle ends in the middle of an opcode" },
    { "fuzz/corpus/pickle/bad_encrypted.zip", ST_ERR_UNSUPPORTED, "zip entry \"archive/data/0\": it is encrypted" },
    { "fuzz/corpus/pickle/bad_entries_few.zip", ST_ERR_FORMAT, "the zip directory has bytes after its last entry" },
    { "fuzz/corpus/pickle/bad_entries_many.zip", ST_ERR_LIMIT,
      "the zip archive claims 60000 entries, expected at most 131072 and no more than its directory holds" },
    { "fuzz/corpus/pickle/bad_eval.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 2: it names \"builtins eval\", which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_ext.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 9: opcode EXT1 (0x82), which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_few_arguments.pkl", ST_ERR_FORMAT,
      "pickle, byte 114: _rebuild_tensor_v2 without a storage or with the wrong number of arguments" },
    { "fuzz/corpus/pickle/bad_float_size.pkl", ST_ERR_FORMAT,
      "pickle, byte 185: a tensor's size is no tuple of at most 8 whole numbers" },
    { "fuzz/corpus/pickle/bad_frame_long.pkl", ST_ERR_FORMAT, "pickle, byte 2: a frame is longer than the pickle" },
    { "fuzz/corpus/pickle/bad_header_far.zip", ST_ERR_FORMAT,
      "zip entry \"archive/data/0\": there is no local header where the directory says" },
    { "fuzz/corpus/pickle/bad_laughs.pkl", ST_ERR_FORMAT,
      "pickle, byte 13005: the stack does not hold exactly one value at the end" },
    { "fuzz/corpus/pickle/bad_long_short.pkl", ST_ERR_FORMAT,
      "pickle, byte 2: the pickle ends in the middle of an opcode" },
    { "fuzz/corpus/pickle/bad_lying_bomb.zip", ST_ERR_FORMAT,
      "zip entry \"archive/data/0\": it claims to expand more than deflate can" },
    { "fuzz/corpus/pickle/bad_mark_left.pkl", ST_ERR_FORMAT,
      "pickle, byte 4: the stack does not hold exactly one value at the end" },
    { "fuzz/corpus/pickle/bad_mark_missing.pkl", ST_ERR_FORMAT, "pickle, byte 3: there is no mark on the stack" },
    { "fuzz/corpus/pickle/bad_memo_empty.pkl", ST_ERR_FORMAT, "pickle, byte 2: a memo place that was never filled" },
    { "fuzz/corpus/pickle/bad_memo_far.pkl", ST_ERR_LIMIT,
      "pickle, byte 3: the memo has more places than a state dict needs" },
    { "fuzz/corpus/pickle/bad_method.zip", ST_ERR_UNSUPPORTED,
      "zip entry \"archive/data/0\": its compression is not supported (only stored and deflated entries are)" },
    { "fuzz/corpus/pickle/bad_methods_differ.zip", ST_ERR_FORMAT,
      "zip entry \"archive/data/0\": directory and local header disagree about size or compression" },
    { "fuzz/corpus/pickle/bad_name_endless.pkl", ST_ERR_FORMAT, "pickle, byte 2: a name without its end of line" },
    { "fuzz/corpus/pickle/bad_name_is_number.pkl", ST_ERR_FORMAT, "pickle, byte 184: a tensor's name is no text" },
    { "fuzz/corpus/pickle/bad_name_long.zip", ST_ERR_LIMIT, "a tensor's name has 600 bytes, expected at most 512: \"" },
    { "fuzz/corpus/pickle/bad_name_newline.zip", ST_ERR_FORMAT, "a tensor's name holds the control character 0x0a" },
    { "fuzz/corpus/pickle/bad_name_nul.zip", ST_ERR_FORMAT, "a tensor's name holds the control character 0x00" },
    { "fuzz/corpus/pickle/bad_names_differ.zip", ST_ERR_FORMAT,
      "zip entry \"archive/version\": its local header has another name" },
    { "fuzz/corpus/pickle/bad_negative_offset.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor's offset is no whole number of 0 or more" },
    { "fuzz/corpus/pickle/bad_negative_size.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor's size is no tuple of at most 8 whole numbers" },
    { "fuzz/corpus/pickle/bad_negative_stride.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor's stride is no tuple of at most 8 whole numbers" },
    { "fuzz/corpus/pickle/bad_no_dict.pkl", ST_ERR_UNSUPPORTED, "the pickle holds list, expected a dict of tensors" },
    { "fuzz/corpus/pickle/bad_no_folder.zip", ST_ERR_UNSUPPORTED,
      "a zip archive without data.pkl in a top folder: not a PyTorch checkpoint" },
    { "fuzz/corpus/pickle/bad_no_pickle.zip", ST_ERR_UNSUPPORTED,
      "a zip archive without data.pkl in a top folder: not a PyTorch checkpoint" },
    { "fuzz/corpus/pickle/bad_no_stop.pkl", ST_ERR_FORMAT,
      "pickle, byte 3: the pickle ends in the middle of an opcode" },
    { "fuzz/corpus/pickle/bad_no_storage.pkl", ST_ERR_FORMAT,
      "pickle, byte 119: _rebuild_tensor_v2 without a storage or with the wrong number of arguments" },
    { "fuzz/corpus/pickle/bad_no_tensors.pkl", ST_ERR_FORMAT,
      "the pickle holds no tensors at its top or under \"model\"; its first key is \"epoch\"" },
    { "fuzz/corpus/pickle/bad_numpy.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 9: it names \"numpy.core.multiarray _reconstruct\", which no state dict needs; nothing was loaded "
      "or run" },
    { "fuzz/corpus/pickle/bad_odd_pairs.pkl", ST_ERR_FORMAT, "pickle, byte 10: a key without a value" },
    { "fuzz/corpus/pickle/bad_ordered_dict_arguments.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 29: an OrderedDict made from arguments" },
    { "fuzz/corpus/pickle/bad_outside.zip", ST_ERR_UNSUPPORTED,
      "a zip archive without data.pkl in a top folder: not a PyTorch checkpoint" },
    { "fuzz/corpus/pickle/bad_overlap.zip", ST_ERR_FORMAT,
      "zip entry \"archive/inner\": it overlaps the entry before it" },
    { "fuzz/corpus/pickle/bad_persid_no_tuple.pkl", ST_ERR_FORMAT,
      "pickle, byte 8: a persistent id that is no tuple of 5" },
    { "fuzz/corpus/pickle/bad_persid_text.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 9: opcode PERSID (0x50), which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_protocol5.pkl", ST_ERR_UNSUPPORTED, "pickle, byte 0: expected protocol 2, 3 or 4" },
    { "fuzz/corpus/pickle/bad_rank9.pkl", ST_ERR_FORMAT,
      "pickle, byte 326: a tensor's size is no tuple of at most 8 whole numbers" },
    { "fuzz/corpus/pickle/bad_ranks_differ.pkl", ST_ERR_FORMAT,
      "pickle, byte 176: a tensor's size and stride differ in length" },
    { "fuzz/corpus/pickle/bad_rebuild_unknown.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 9: it names \"torch._utils _rebuild_sparse_tensor\", which no state dict needs; nothing was loaded "
      "or run" },
    { "fuzz/corpus/pickle/bad_reduce_dict.pkl", ST_ERR_FORMAT,
      "pickle, byte 4: a call of what is no function, or without a tuple of arguments" },
    { "fuzz/corpus/pickle/bad_reduce_no_tuple.pkl", ST_ERR_FORMAT,
      "pickle, byte 28: a call of what is no function, or without a tuple of arguments" },
    { "fuzz/corpus/pickle/bad_repeated_view.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor with more elements than its storage" },
    { "fuzz/corpus/pickle/bad_set_in_list.pkl", ST_ERR_FORMAT, "pickle, byte 15: pairs are set in what is no dict" },
    { "fuzz/corpus/pickle/bad_size_far.zip", ST_ERR_FORMAT,
      "zip entry \"archive/data/0\": its data are not inside the file" },
    { "fuzz/corpus/pickle/bad_size_overflow.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor with more elements than its storage" },
    { "fuzz/corpus/pickle/bad_sizes_differ.zip", ST_ERR_FORMAT,
      "zip entry \"archive/data/0\": directory and local header disagree about size or compression" },
    { "fuzz/corpus/pickle/bad_split.zip", ST_ERR_UNSUPPORTED, "the zip archive is split over several files" },
    { "fuzz/corpus/pickle/bad_storage_called.pkl", ST_ERR_FORMAT,
      "pickle, byte 32: a call of a type that a state dict only names" },
    { "fuzz/corpus/pickle/bad_storage_key_path.pkl", ST_ERR_FORMAT,
      "pickle, byte 117: a storage without a usable key" },
    { "fuzz/corpus/pickle/bad_storage_long.zip", ST_ERR_FORMAT,
      "tensor \"w\": entry data/0 has 100 bytes, but the pickle says 12 elements of F32" },
    { "fuzz/corpus/pickle/bad_storage_missing.zip", ST_ERR_FORMAT, "tensor \"w\": the archive has no entry data/0" },
    { "fuzz/corpus/pickle/bad_storage_negative.pkl", ST_ERR_FORMAT,
      "pickle, byte 102: a storage without a location or size" },
    { "fuzz/corpus/pickle/bad_storage_of_module.pkl", ST_ERR_FORMAT,
      "pickle, byte 101: a persistent id that is no \"storage\"" },
    { "fuzz/corpus/pickle/bad_storage_short.zip", ST_ERR_FORMAT,
      "tensor \"w\": entry data/0 has 4 bytes, but the pickle says 12 elements of F32" },
    { "fuzz/corpus/pickle/bad_storage_typed.pkl", ST_ERR_FORMAT, "pickle, byte 110: a storage of a type that is none" },
    { "fuzz/corpus/pickle/bad_stray.zip", ST_ERR_FORMAT, "zip entry \"version\" lies outside the folder \"archive/\"" },
    { "fuzz/corpus/pickle/bad_stride_overflow.pkl", ST_ERR_FORMAT,
      "pickle, byte 186: a tensor that reaches beyond its storage" },
    { "fuzz/corpus/pickle/bad_tensor_twice.zip", ST_ERR_FORMAT, "tensor \"w\" is there twice" },
    { "fuzz/corpus/pickle/bad_text_long.pkl", ST_ERR_FORMAT,
      "pickle, byte 2: the pickle ends in the middle of an opcode" },
    { "fuzz/corpus/pickle/bad_torch_load.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 9: it names \"torch load\", which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_torchscript.zip", ST_ERR_UNSUPPORTED,
      "a TorchScript archive (it has constants.pkl), expected a state dict from torch.save" },
    { "fuzz/corpus/pickle/bad_twice.zip", ST_ERR_FORMAT, "zip entry \"archive/data/0\": it is there twice" },
    { "fuzz/corpus/pickle/bad_two_values.pkl", ST_ERR_FORMAT,
      "pickle, byte 4: the stack does not hold exactly one value at the end" },
    { "fuzz/corpus/pickle/bad_underflow.pkl", ST_ERR_FORMAT, "pickle, byte 2: the stack has too few values" },
    { "fuzz/corpus/pickle/bad_unknown_opcode.pkl", ST_ERR_UNSUPPORTED,
      "pickle, byte 2: opcode unknown (0xff), which no state dict needs; nothing was loaded or run" },
    { "fuzz/corpus/pickle/bad_zip64_far.zip", ST_ERR_FORMAT,
      "the zip64 end record is not at byte 1152921504606846976, where its locator says" },
    { "fuzz/corpus/safetensors/bad_backwards", ST_ERR_FORMAT,
      "tensor \"a\": bytes 16 to 0 are not inside the 16 bytes of data" },
    { "fuzz/corpus/safetensors/bad_beyond", ST_ERR_FORMAT,
      "tensor \"a\": bytes 0 to 16 are not inside the 15 bytes of data" },
    { "fuzz/corpus/safetensors/bad_deep", ST_ERR_FORMAT,
      "safetensors header: broken JSON at byte 2053: maximum parsing depth reached near '['" },
    { "fuzz/corpus/safetensors/bad_dtype_number", ST_ERR_FORMAT, "tensor \"a\": \"dtype\" is missing or no string" },
    { "fuzz/corpus/safetensors/bad_dtype_unknown", ST_ERR_UNSUPPORTED,
      "tensor \"a\": dtype \"F8_E4M3\" is not supported" },
    { "fuzz/corpus/safetensors/bad_duplicate", ST_ERR_FORMAT,
      "safetensors header: broken JSON at byte 56: duplicate object key near '\"a\"'" },
    { "fuzz/corpus/safetensors/bad_duplicate_key", ST_ERR_FORMAT,
      "safetensors header: broken JSON at byte 26: duplicate object key near '\"dtype\"'" },
    { "fuzz/corpus/safetensors/bad_gap", ST_ERR_FORMAT,
      "tensor \"b\" starts at byte 20, after a gap: the one before ends at 16" },
    { "fuzz/corpus/safetensors/bad_gap_at_start", ST_ERR_FORMAT,
      "tensor \"a\" starts at byte 4, after a gap: the one before ends at 0" },
    { "fuzz/corpus/safetensors/bad_header_beyond", ST_ERR_FORMAT,
      "the header claims 1000 bytes, the file has 2 after its length (cut off?)" },
    { "fuzz/corpus/safetensors/bad_header_huge", ST_ERR_LIMIT,
      "the header claims 104857601 bytes, expected at most 104857600" },
    { "fuzz/corpus/safetensors/bad_header_wraps", ST_ERR_LIMIT,
      "the header claims 18446744073709551612 bytes, expected at most 104857600" },
    { "fuzz/corpus/safetensors/bad_key_less", ST_ERR_FORMAT,
      "tensor \"a\": expected dtype, shape and data_offsets, got 2 keys" },
    { "fuzz/corpus/safetensors/bad_key_more", ST_ERR_FORMAT,
      "tensor \"a\": expected dtype, shape and data_offsets, got 4 keys" },
    { "fuzz/corpus/safetensors/bad_leading_space", ST_ERR_FORMAT,
      "the header is no JSON object followed by nothing but spaces" },
    { "fuzz/corpus/safetensors/bad_metadata_number", ST_ERR_FORMAT, "\"__metadata__\" is no JSON object" },
    { "fuzz/corpus/safetensors/bad_name_broken_utf8", ST_ERR_FORMAT,
      "safetensors header: broken JSON at byte 2: unable to decode byte 0xff near '\"'" },
    { "fuzz/corpus/safetensors/bad_name_control", ST_ERR_FORMAT, "a tensor's name holds the control character 0x1b" },
    { "fuzz/corpus/safetensors/bad_name_empty", ST_ERR_FORMAT, "a tensor has an empty name" },
    { "fuzz/corpus/safetensors/bad_name_long", ST_ERR_LIMIT,
      "a tensor's name has 600 bytes, expected at most 512: \"" },
    { "fuzz/corpus/safetensors/bad_no_dtype", ST_ERR_FORMAT, "tensor \"a\": \"dtype\" is missing or no string" },
    { "fuzz/corpus/safetensors/bad_no_object", ST_ERR_FORMAT,
      "the header is no JSON object followed by nothing but spaces" },
    { "fuzz/corpus/safetensors/bad_not_json", ST_ERR_FORMAT,
      "safetensors header: broken JSON at byte 6: unexpected token near '}'" },
    { "fuzz/corpus/safetensors/bad_offset_largest", ST_ERR_FORMAT,
      "tensor \"a\": bytes 9223372036854775792 to 9223372036854775807 are not inside the 16 bytes of data" },
    { "fuzz/corpus/safetensors/bad_offset_negative", ST_ERR_FORMAT,
      "tensor \"a\": bytes -16 to 0 are not inside the 16 bytes of data" },
    { "fuzz/corpus/safetensors/bad_offset_overflow", ST_ERR_FORMAT,
      "safetensors header: broken JSON at byte 72: too big integer near '18446744073709551632'" },
    { "fuzz/corpus/safetensors/bad_offset_real", ST_ERR_FORMAT,
      "tensor \"a\": \"data_offsets\" is missing or no pair of whole numbers" },
    { "fuzz/corpus/safetensors/bad_offsets_three", ST_ERR_FORMAT,
      "tensor \"a\": \"data_offsets\" is missing or no pair of whole numbers" },
    { "fuzz/corpus/safetensors/bad_overlap", ST_ERR_FORMAT,
      "tensor \"b\" starts at byte 8, inside tensor \"a\", which ends at 16" },
    { "fuzz/corpus/safetensors/bad_same_bytes", ST_ERR_FORMAT,
      "tensor \"b\" starts at byte 0, inside tensor \"a\", which ends at 16" },
    { "fuzz/corpus/safetensors/bad_shape_huge", ST_ERR_FORMAT,
      "tensor \"a\": its shape's product does not fit into 64 bits" },
    { "fuzz/corpus/safetensors/bad_shape_negative", ST_ERR_FORMAT,
      "tensor \"a\": dimension 0 is no whole number of 0 or more" },
    { "fuzz/corpus/safetensors/bad_shape_rank9", ST_ERR_FORMAT, "tensor \"a\": 9 dimensions, expected at most 8" },
    { "fuzz/corpus/safetensors/bad_shape_text", ST_ERR_FORMAT,
      "tensor \"a\": dimension 0 is no whole number of 0 or more" },
    { "fuzz/corpus/safetensors/bad_shape_wraps", ST_ERR_FORMAT,
      "tensor \"a\": its shape's product does not fit into 64 bits" },
    { "fuzz/corpus/safetensors/bad_shape_wraps_type", ST_ERR_FORMAT,
      "tensor \"a\": its shape's product does not fit into 64 bits" },
    { "fuzz/corpus/safetensors/bad_short", ST_ERR_FORMAT, "3 bytes are too few for a safetensors file" },
    { "fuzz/corpus/safetensors/bad_size_wrong", ST_ERR_FORMAT,
      "tensor \"a\": 12 bytes, but F32 of shape [2, 2] needs 16" },
    { "fuzz/corpus/safetensors/bad_tensor_number", ST_ERR_FORMAT, "tensor \"a\": its description is no JSON object" },
    { "fuzz/corpus/safetensors/bad_trailing", ST_ERR_FORMAT,
      "the header is no JSON object followed by nothing but spaces" },
    { "fuzz/corpus/safetensors/bad_trailing_newline", ST_ERR_FORMAT,
      "the header is no JSON object followed by nothing but spaces" },
    { "fuzz/corpus/safetensors/bad_trailing_nul", ST_ERR_FORMAT,
      "the header is no JSON object followed by nothing but spaces" },
    { "fuzz/corpus/safetensors/bad_unused_end", ST_ERR_FORMAT, "the tensors end at byte 16 of 20 bytes of data" },
    { "data/weights/expanded.pt", ST_ERR_FORMAT, "pickle, byte 164: a tensor with more elements than its storage" },
    { "data/weights/float8.pt", ST_ERR_UNSUPPORTED,
      "pickle, byte 17: it names \"torch._utils _rebuild_tensor_v3\", which no state dict needs; nothing was loaded or "
      "run" },
    { "data/weights/legacy.pt", ST_ERR_UNSUPPORTED,
      "a PyTorch file in the old format from before version 1.6, expected a zip archive: load it and torch.save it "
      "again" },
    { "data/weights/list.pt", ST_ERR_UNSUPPORTED, "the pickle holds list, expected a dict of tensors" },
    { "data/weights/nested.pt", ST_ERR_FORMAT,
      "the pickle holds no tensors at its top or under \"model\"; its first key is \"a\"" },
    { "data/weights/numpy.pt", ST_ERR_UNSUPPORTED,
      "pickle, byte 172: it names \"numpy._core.multiarray scalar\", which no state dict needs; nothing was loaded or "
      "run" },
    { "data/weights/script.pt", ST_ERR_UNSUPPORTED,
      "a TorchScript archive (it has constants.pkl), expected a state dict from torch.save" },
    { "data/weights/whole_module.pt", ST_ERR_UNSUPPORTED,
      "pickle, byte 2: it names \"torch.nn.modules.container Sequential\", which no state dict needs; nothing was "
      "loaded or run" },
};
#define N_REFUSALS (sizeof refusals / sizeof *refusals)

static int set_up(void **state)
{
    static temp_folder folder;
    temp_folder_make(&folder);
    *state = &folder;
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_remove(*state);
    return 0;
}

/* A bare pickle by its reader, everything else by its path. */
static st_status read_any(const char *path, size_t *n_tensors, st_error *err)
{
    const size_t n = strlen(path);
    st_status status;
    if (n > 4 && strcmp(path + n - 4, ".pkl") == 0) {
        st_pickle pickle;
        char *text;
        size_t n_text;
        assert_int_equal(st_file_read(&text, &n_text, path, 1 << 20, err), ST_OK);
        status = st_pickle_read(&pickle, (const unsigned char *)text, n_text, err);
        *n_tensors = pickle.n_tensors;
        st_pickle_free(&pickle);
        free(text);
    } else {
        st_checkpoint c;
        status = st_checkpoint_open(&c, path, err);
        *n_tensors = c.catalog.n;
        st_checkpoint_free(&c);
    }
    return status;
}

static void hostile_files_are_refused_for_their_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_REFUSALS; i++) {
        char path[512];
        size_t n_tensors;
        st_error err = { 0 };
        snprintf(path, sizeof path, "%s/tests/%s", ST_SOURCE_DIR, refusals[i].file);
        const st_status status = read_any(path, &n_tensors, &err);
        if (status != refusals[i].status) fail_msg("%s: status %d: %s", path, status, err.message);
        if (!strstr(err.message, refusals[i].message))
            fail_msg("%s: expected \"%s\": %s", path, refusals[i].message, err.message);
        assert_int_equal(err.status, status);
        assert_int_equal(n_tensors, 0); /* nothing is left behind */
    }
    assert_int_not_equal(access("/tmp/stencil-was-here", F_OK), 0); /* what bad_call_* would have made */
}

/* No hostile file without its line above, and nothing else is refused. */
static void the_corpora_are_as_listed(void **state)
{
    (void)state;
    static const char *const folders[] = { "fuzz/corpus/pickle", "fuzz/corpus/safetensors" };
    size_t n_bad = 0, n_valid = 0;
    for (size_t f = 0; f < 2; f++) {
        char path[512];
        snprintf(path, sizeof path, "%s/tests/%s", ST_SOURCE_DIR, folders[f]);
        DIR *dir = opendir(path);
        assert_non_null(dir);
        for (struct dirent *e; (e = readdir(dir)) != NULL;) {
            char name[512], full[768];
            bool listed = false;
            snprintf(name, sizeof name, "%s/%s", folders[f], e->d_name);
            for (size_t i = 0; i < N_REFUSALS; i++) listed = listed || strcmp(refusals[i].file, name) == 0;
            if (strncmp(e->d_name, "bad_", 4) == 0) {
                if (!listed) fail_msg("%s is not listed", name);
                n_bad++;
            } else if (strncmp(e->d_name, "valid_", 6) == 0) {
                size_t n_tensors;
                st_error err = { 0 };
                snprintf(full, sizeof full, "%s/%s", path, e->d_name);
                if (read_any(full, &n_tensors, &err) != ST_OK) fail_msg("%s: %s", name, err.message);
                n_valid++;
            }
        }
        closedir(dir);
    }
    assert_true(n_bad > 120 && n_valid > 18);
}

/* ---------------------------------------------------------------- what torch.save wrote */

static void open_data(st_checkpoint *c, const char *name)
{
    char path[512];
    st_error err = { 0 };
    snprintf(path, sizeof path, "%s/tests/data/weights/%s", ST_SOURCE_DIR, name);
    if (st_checkpoint_open(c, path, &err) != ST_OK) fail_msg("%s", err.message);
}

/* The raw bytes of a tensor, row-major. */
static void read_bytes(unsigned char *out, st_catalog *cat, const st_entry *e)
{
    const size_t size = st_dtype_size(e->dtype);
    st_error err = { 0 };
    assert_int_equal(st_blob_expand(&cat->blobs[e->blob], e->name, &err), ST_OK);
    const unsigned char *origin = cat->blobs[e->blob].data + e->offset;
    for (uint64_t i = 0; i < e->n_elements; i++) {
        uint64_t at = 0, rest = i;
        for (uint32_t d = e->rank; d-- > 0; rest /= e->shape[d]) at += rest % e->shape[d] * e->stride[d];
        memcpy(out + i * size, origin + at * size, size);
    }
}

static void check_like_expected(const char *name)
{
    st_checkpoint got, expected;
    open_data(&got, name);
    open_data(&expected, "expected.safetensors");
    assert_int_equal(expected.catalog.n, 20);
    assert_int_equal(got.catalog.n, 21); /* and a complex one */
    for (size_t i = 0; i < expected.catalog.n; i++) {
        const st_entry *want = &expected.catalog.entries[i], *have = st_catalog_find(&got.catalog, want->name);
        if (!have) fail_msg("%s lacks %s", name, want->name);
        assert_int_equal(have->dtype, want->dtype);
        assert_int_equal(have->rank, want->rank);
        assert_memory_equal(have->shape, want->shape, sizeof want->shape);
        unsigned char a[512], b[512];
        const size_t n = (size_t)want->n_elements, n_bytes = n * st_dtype_size(want->dtype);
        assert_true(n_bytes <= sizeof a);
        read_bytes(a, &got.catalog, have);
        read_bytes(b, &expected.catalog, want);
        assert_memory_equal(a, b, n_bytes);
        const size_t half = n / 2, size = st_dtype_size(want->dtype); /* the same by the copying reader, in two goes */
        memset(a, 0xEE, sizeof a);
        st_entry_copy(&got.catalog, have, 0, half, a);
        st_entry_copy(&got.catalog, have, half, n - half, a + half * size);
        assert_memory_equal(a, b, n_bytes);
        if (!st_dtype_is_real(want->dtype) || n == 0) continue;
        float x[128], y[128]; /* the gathering reader, from every start */
        assert_int_equal(st_entry_read(&expected.catalog, want, 0, n, y), n);
        for (size_t first = 0; first < n; first++) {
            assert_int_equal(st_entry_read(&got.catalog, have, first, n - first, x), n - first);
            assert_memory_equal(x, y + first, (n - first) * sizeof *x);
        }
    }
    assert_int_equal(st_catalog_find(&got.catalog, "complex")->dtype, ST_DTYPE_C64);
    st_checkpoint_free(&expected);
    st_checkpoint_free(&got);
}

static void archives_by_torch_are_read_to_the_bit(void **state)
{
    (void)state;
    static const char *const names[] = { "plain.pt", "wrapped.pt", "unaligned.pt", "deflated.pt" };
    for (size_t i = 0; i < 4; i++) check_like_expected(names[i]);
}

static void views_keep_their_strides(void **state)
{
    (void)state;
    st_checkpoint c;
    open_data(&c, "plain.pt");
    const st_entry *transposed = st_catalog_find(&c.catalog, "transposed"), *rows = st_catalog_find(&c.catalog, "rows"),
                   *unit = st_catalog_find(&c.catalog, "unit_side"), *columns = st_catalog_find(&c.catalog, "columns");
    assert_false(transposed->contiguous);
    assert_false(columns->contiguous);
    assert_true(rows->contiguous);
    assert_int_equal(rows->offset, 2 * 8 * 4);
    assert_int_equal(rows->blob, transposed->blob); /* one storage */
    assert_false(unit->contiguous);                 /* [1, 4] with strides [1, 6] */
    assert_int_equal(st_catalog_find(&c.catalog, "scalar")->rank, 0);
    assert_int_equal(st_catalog_find(&c.catalog, "empty")->n_elements, 0);
    assert_true(st_catalog_find(&c.catalog, "empty")->contiguous);
    st_checkpoint_free(&c);
    open_data(&c, "module.pt"); /* an OrderedDict with attributes */
    assert_int_equal(c.catalog.n, 4);
    assert_non_null(st_catalog_find(&c.catalog, "1.bias"));
    st_checkpoint_free(&c);
}

/* ---------------------------------------------------------------- damage */

typedef struct damaged {
    const temp_folder *t;
    tiny_bytes file;
    const char *name;
} damaged;

/* Opens the first n bytes; whatever is accepted must be whole. */
static st_status open_part(const damaged *d, size_t n, st_error *err)
{
    st_weights *w = NULL;
    char *path = temp_path(d->t, d->name);
    temp_write(d->t, d->name, d->file.data, n);
    const st_status status = st_weights_open(&w, path, NULL, err);
    free(path);
    st_weights_free(w);
    return status;
}

static void cut_files_are_refused(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, false);
    damaged safe = { .t = t, .name = "a.safetensors" }, torch = { .t = t, .name = "a.pt" };
    tiny_safetensors(&safe.file, &m, 0, m.n, 0);
    tiny_pt(&torch.file, &m, true, false);
    st_error err = { 0 };
    assert_int_equal(open_part(&safe, safe.file.n, &err), ST_OK);
    assert_int_equal(open_part(&torch, torch.file.n, &err), ST_OK);
    for (size_t i = 0; i < 50; i++) {
        assert_int_not_equal(open_part(&safe, safe.file.n * i / 50, &err), ST_OK);
        assert_int_not_equal(open_part(&torch, torch.file.n * i / 50, &err), ST_OK);
        assert_int_not_equal(open_part(&safe, safe.file.n - 1 - i, &err), ST_OK);
        assert_int_not_equal(open_part(&torch, torch.file.n - 1 - i, &err), ST_OK);
    }
    free(safe.file.data);
    free(torch.file.data);
    tiny_free(&m);
}

/* One bit of the header at a time. A name or a shape that changes is refused; the few harmless places (the
 * metadata, a tensor of no use) may pass. */
static void flipped_header_bits_are_refused(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, false);
    damaged d = { .t = t, .name = "a.safetensors" };
    tiny_safetensors(&d.file, &m, 0, m.n, 0);
    const size_t n_header = 8 + (d.file.data[0] | (size_t)d.file.data[1] << 8 | (size_t)d.file.data[2] << 16);
    size_t n_accepted = 0, n = 0;
    for (size_t bit = 0; bit < 8 * n_header; bit += bit < 300 ? 1 : 977) {
        st_error err = { 0 };
        d.file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        n_accepted += open_part(&d, d.file.n, &err) == ST_OK;
        n++;
        d.file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(n > 500);
    assert_true(n_accepted < n / 10);
    free(d.file.data);
    tiny_free(&m);
}

/* The same for the pickle and the directory of an archive. */
static void flipped_archive_bits_do_no_harm(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_HF, false);
    damaged d = { .t = t, .name = "a.pt" };
    tiny_pt(&d.file, &m, false, false);
    size_t n_refused = 0, n = 0;
    for (size_t at = 0; at < d.file.n; at += at < 3000 || at > d.file.n - 3000 ? 61 : 1913) {
        st_error err = { 0 };
        const unsigned char kept = d.file.data[at];
        d.file.data[at] ^= (unsigned char)(1u << at % 8);
        n_refused += open_part(&d, d.file.n, &err) != ST_OK;
        n++;
        d.file.data[at] = kept;
    }
    assert_true(n > 200 && n_refused > n / 10); /* most bytes are values */
    free(d.file.data);
    tiny_free(&m);
}

/* ---------------------------------------------------------------- folders and shards */

static void check_open(const temp_folder *t, const char *name, st_status expected, const char *message)
{
    char *path = temp_path(t, name);
    st_weights *w = NULL;
    st_error err = { 0 };
    const st_status status = st_weights_open(&w, path, NULL, &err);
    if (status != expected) fail_msg("%s: status %d: %s", name, status, err.message);
    if (expected != ST_OK && (!strstr(err.message, message) || !strstr(err.message, name)))
        fail_msg("expected \"%s\": %s", message, err.message);
    st_weights_free(w);
    free(path);
}

static void write_index(const temp_folder *t, const char *weight_map)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"weight_map\": %s}", weight_map);
    temp_write_text(t, "s/model.safetensors.index.json", text);
}

static void shards_must_fit_together(void **state)
{
    temp_folder *t = *state;
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    unsigned char file[8 + sizeof header] = { sizeof header - 1 };
    memcpy(file + 8, header, sizeof header - 1);
    file[8 + sizeof header - 1] = 7;
    temp_write(t, "s/1.safetensors", file, sizeof file);
    file[10] = 'b';
    temp_write(t, "s/2.safetensors", file, sizeof file);
    static const char index[] = "s/model.safetensors.index.json";
    write_index(t, "{\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"}");
    check_open(t, "s", ST_ERR_UNSUPPORTED, "none of SAM 3's tensors are in this file of 2 tensors");
    write_index(t, "{\"a\": \"1.safetensors\", \"b\": \"1.safetensors\"}");
    check_open(t, index, ST_ERR_FORMAT, "tensor \"b\" is in no shard, expected in 1.safetensors");
    write_index(t, "{\"a\": \"2.safetensors\", \"b\": \"1.safetensors\"}");
    check_open(t, index, ST_ERR_FORMAT, "tensor \"a\" is in 1.safetensors, expected in 2.safetensors");
    write_index(t, "{\"a\": \"1.safetensors\", \"c\": \"2.safetensors\"}");
    check_open(t, index, ST_ERR_FORMAT, "tensor \"c\" is in no shard");
    write_index(t, "{\"a\": \"1.safetensors\", \"b\": \"2.safetensors\", \"c\": \"3.safetensors\"}");
    check_open(t, "s", ST_ERR_IO, "3.safetensors: cannot open");
    static const char *const names[] = {
        "../1.safetensors", "/etc/passwd", "x/1.safetensors", "..", ".", "", "a\\\\b"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"a\": \"%s\"}", names[i]);
        write_index(t, text);
        check_open(t, index, ST_ERR_FORMAT, "expected a file name without folders");
    }
    write_index(t, "{\"a\": 5}");
    check_open(t, index, ST_ERR_FORMAT, "(not a string)");
    write_index(t, "{}");
    check_open(t, index, ST_ERR_FORMAT, "\"weight_map\" is missing or no object with entries");
    write_index(t, "{\"a\": \"1.safetensors\", \"a\": \"1.safetensors\"}");
    check_open(t, index, ST_ERR_FORMAT, "duplicate object key");
    file[10] = 'a';
    temp_write(t, "s/2.safetensors", file, sizeof file);
    write_index(t, "{\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"}");
    check_open(t, index, ST_ERR_FORMAT, "tensor \"a\" is in two shards, 1.safetensors and 2.safetensors");
    temp_write_text(t, "s/2.safetensors", "PK\3\4 not a shard");
    check_open(t, "s", ST_ERR_LIMIT, "2.safetensors: the header claims");
}

/* A snapshot is a folder of links into a blob store. */
static void links_are_followed(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_HF, false);
    tiny_write_safetensors(t, "blobs/0123", &m);
    temp_write_text(t, "blobs/4567", tiny_config);
    temp_write_text(t, "snapshots/1/README.md", "");
    char *weights = temp_path(t, "snapshots/1/model.safetensors"), *config = temp_path(t, "snapshots/1/config.json");
    assert_int_equal(symlink("../../blobs/0123", weights), 0);
    assert_int_equal(symlink("../../blobs/4567", config), 0);
    check_open(t, "snapshots/1", ST_OK, NULL);
    check_open(t, "snapshots/1/model.safetensors", ST_OK, NULL);
    free(weights);
    free(config);
    tiny_free(&m);
}

static void wrong_paths_are_explained(void **state)
{
    temp_folder *t = *state;
    temp_write_text(t, "empty", "");
    temp_write_text(t, "lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
    temp_write_text(t, "page.pt", "<!DOCTYPE html><html>");
    temp_write_text(t, "model.gguf", "GGUF\3\0\0\0\0");
    temp_write(t, "bare.pt", "\x80\4}.", 4);
    temp_write_text(t, "noise", "hello, this is no checkpoint at all");
    temp_write_text(t, "config.json", "{\"model_type\": \"sam3\"}");
    temp_write_text(t, "folder/readme", "");
    check_open(t, "missing", ST_ERR_IO, "No such file");
    check_open(t, "empty", ST_ERR_FORMAT, "the file is empty");
    check_open(t, "lfs", ST_ERR_UNSUPPORTED, "a Git LFS pointer");
    check_open(t, "page.pt", ST_ERR_UNSUPPORTED, "a web page");
    check_open(t, "model.gguf", ST_ERR_UNSUPPORTED, "a GGUF file");
    check_open(t, "bare.pt", ST_ERR_UNSUPPORTED, "a bare pickle");
    check_open(t, "noise", ST_ERR_LIMIT, "the header claims");
    check_open(t, "config.json", ST_ERR_FORMAT, "\"weight_map\" is missing");
    check_open(t, "folder", ST_ERR_IO, "the folder holds no model.safetensors");
}

/* ---------------------------------------------------------------- amounts */

static void check_header(const temp_folder *t, const tiny_bytes *header, st_status expected, const char *message)
{
    tiny_bytes file = { 0 };
    tiny_put_number(&file, header->n, 8);
    tiny_put(&file, header->data, header->n);
    temp_write(t, "large", file.data, file.n);
    check_open(t, "large", expected, message);
    free(file.data);
}

/* Small files that ask for much: refused before the memory is taken. */
static void amounts_are_bounded(void **state)
{
    temp_folder *t = *state;
    tiny_bytes header = { 0 }, pickle = { 0 };
    tiny_puts(&header, "{\"a\":[0");
    for (size_t i = 0; i < 2000000; i++) tiny_put(&header, ",0", 2);
    tiny_puts(&header, "]}");
    check_header(t, &header, ST_ERR_LIMIT, "more than 2000000 JSON values");
    header.n = 0;
    for (size_t i = 0; i < 66000; i++) {
        char line[80];
        snprintf(line, sizeof line, "%s\"%zu\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "{", i);
        tiny_puts(&header, line);
    }
    tiny_puts(&header, "}");
    check_header(t, &header, ST_ERR_LIMIT, "66000 tensors, expected at most 65536");
    st_pickle p;
    st_error err = { 0 };
    tiny_put(&pickle, "\x80\2", 2);
    for (size_t i = 0; i < ST_MAX_PICKLE_VALUES + 1; i++) tiny_put(&pickle, "N", 1);
    assert_int_equal(st_pickle_read(&p, pickle.data, pickle.n, &err), ST_ERR_LIMIT);
    assert_non_null(strstr(err.message, "more values than a state dict has"));
    memset(pickle.data + 2, '(', pickle.n - 2);
    assert_int_equal(st_pickle_read(&p, pickle.data, pickle.n, &err), ST_ERR_LIMIT);
    assert_int_equal(st_pickle_read(&p, pickle.data, ST_MAX_PICKLE_BYTES + 1, &err), ST_ERR_LIMIT); /* not looked at */
    free(pickle.data);
    free(header.data);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_files_are_refused_for_their_reason),
        cmocka_unit_test(the_corpora_are_as_listed),
        cmocka_unit_test(archives_by_torch_are_read_to_the_bit),
        cmocka_unit_test(views_keep_their_strides),
        TEST(cut_files_are_refused),
        TEST(flipped_header_bits_are_refused),
        TEST(flipped_archive_bits_do_no_harm),
        TEST(shards_must_fit_together),
        TEST(links_are_followed),
        TEST(wrong_paths_are_explained),
        TEST(amounts_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
