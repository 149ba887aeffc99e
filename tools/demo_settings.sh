# demo_settings.sh: what `make demo` shows and the install check runs; sourced. Each can be set from outside.
DEMO_MODEL=${DEMO_MODEL:-models/demo}
DEMO_PICTURE=${DEMO_PICTURE:-models/demo/scene.png}
DEMO_PHRASE=${DEMO_PHRASE:-food}
