# Bash completion for stencil.
_stencil() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} options words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "segment label click concept everything encode quantize info check bench version help --help --version" -- "$cur")
        return
    fi
    case $command in
        segment) options="--model --picture --phrase --box --threshold --mask-threshold --max-detections --boxes-only --format --output
            --overlay --threads --size --memory-limit --stretch --resize --max-pixels --hf-text-only --features --concept --point --region --mask
            --multimask --hole-area --hf --quiet --verbose --help" ;;
        label)
            # A word that begins no verb is a folder.
            [ "$COMP_CWORD" -eq 2 ] && [ -n "$cur" ] && words=$(compgen -W "sweep export sheet" -- "$cur")
            case ${COMP_WORDS[2]} in
                export) options="--format --output --threshold --min-area --max-area --images --rle --labelme-masks --holes --parts
                --boxes-only --split --seed --image-prefix --overwrite --quiet --verbose --help" ;;
                sheet) options="--output --threshold --min-area --max-area --most --side --overlays --quiet --verbose --help" ;;
                sweep) options="--thresholds --speck --json --output --quiet --help" ;;
                *) options="--model --class --classes --output --format --threshold --min-area --max-area --overwrite --floor
                --mask-threshold --boxes-only --tile --tile-size --tile-overlap --tiles-only --duplicates
                --duplicate-threshold --across-classes --negatives --root --limit --dry-run --redo --check-pictures --shard --merge
                --stretch --resize --max-pixels --hf-text-only --json --threads --size --memory-limit --quiet --verbose --help" ;;
            esac ;;
        click) options="--model --features --multimask --hole-area --hf --stretch --resize --max-pixels --threads --size --memory-limit --quiet --verbose --help" ;;
        concept)
            options="--model --box --phrase --output --features --stretch --resize --max-pixels --threads --size --memory-limit --json --quiet --verbose
            --help"
            [ "$COMP_CWORD" -eq 2 ] && words="make show" ;;
        everything) options="--model --features --points-per-side --points-per-batch --pred-iou-thresh --stability-score-thresh
            --stability-score-offset --box-nms-thresh --crop-n-layers --crop-nms-thresh --crop-overlap-ratio --crop-n-points-downscale-factor
            --min-mask-region-area --overlap-thresh --max-masks --hf --format --output --overlay --stretch --resize --max-pixels --threads
            --size --memory-limit --quiet --verbose --help" ;;
        encode) options="--model --output --clicks --half --stretch --resize --max-pixels --threads --size --memory-limit --quiet --verbose --help" ;;
        quantize) options="--model --output --calibrate --pictures --phrase --max-error --no-smooth --json --threads --size --quiet --verbose --help" ;;
        info) options="--model --json --plan --threads --size --memory-limit --quiet --verbose --help" ;;
        check) options="--model --json --threads --size --quiet --verbose --help" ;;
        bench)
            options="--model --instances --size --noise --runs --threads --memory-limit --json --quiet --verbose --help"
            [ "$COMP_CWORD" -eq 2 ] && words="masks picture click" ;;
        help) words="segment label click concept everything encode quantize info check bench version help" ;;
    esac
    case $prev in
        --format | -f)
            words="json coco png table"
            [ "$command" = label ] && words="coco yolo labelme cvat label-studio voc masks jsonl" ;;
        --stretch) words="auto never always" ;;
        --resize) words="gpu cpu" ;;
        --multimask) words="auto on off" ;;
        --duplicates) words="iou smaller off" ;;
        --images) words="link symlink copy none" ;;
        --holes) words="bridge fill" ;;
        --parts) words="join largest split" ;;
        --class | -c | --min-area | --max-area | --floor | --tile-size | --tile-overlap | --duplicate-threshold | --limit | --shard | --thresholds | --speck | --split | --most | --side | \
            --seed | --image-prefix) return ;;
        --phrase | --box | --point | --region | --hole-area | --threshold | --mask-threshold | --max-detections | --threads | -j | --max-pixels | --memory-limit | --instances | --size | --runs | --points-per-side | \
            --points-per-batch | --pred-iou-thresh | --stability-score-thresh | --stability-score-offset | --box-nms-thresh | --crop-n-layers | --crop-nms-thresh | \
            --crop-overlap-ratio | --crop-n-points-downscale-factor | --min-mask-region-area | --overlap-thresh | --max-masks | --pictures | --max-error) return ;;
    esac
    if [ -n "$words" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -F _stencil stencil
