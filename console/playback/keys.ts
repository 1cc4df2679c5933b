// The keys of Playback.

import type { Keys } from '../app/keyboard.ts';
import type { Playback } from './playback.ts';

interface Actions {
  readonly exportSelection: () => void;
  readonly protect: () => void;
  readonly bookmark: () => void;
  readonly goToTime: () => void;
  readonly fullScreen: () => void;
  readonly saveStill: () => void;
  /** The camera with this number in the list, from 1. */
  readonly chooseCamera: (number: number) => void;
}

export function playbackKeys(playback: Playback, actions: Actions): Keys {
  const numbers = Array.from({ length: 9 }, (_, i) => [String(i + 1), () => actions.chooseCamera(i + 1)] as const);
  return {
    ...Object.fromEntries(numbers),
    ' ': () => playback.setPlaying(!playback.isPlaying.peek()),
    k: () => playback.setPlaying(false),
    j: () => playback.shuttle(-1),
    l: () => playback.shuttle(1),
    ',': () => playback.stepFrame(-1),
    '.': () => playback.stepFrame(1),
    ArrowLeft: () => playback.move(-5_000),
    ArrowRight: () => playback.move(5_000),
    'Shift+ArrowLeft': () => playback.move(-60_000),
    'Shift+ArrowRight': () => playback.move(60_000),
    '[': () => playback.mark('in'),
    ']': () => playback.mark('out'),
    n: () => void playback.goToGap(1),
    'Shift+n': () => void playback.goToGap(-1),
    v: () => void playback.goToEvent(1),
    'Shift+v': () => void playback.goToEvent(-1),
    q: () => playback.toggleSkip(),
    x: () => playback.toggleSearch(),
    '+': () => playback.zoomBy(0.5),
    '=': () => playback.zoomBy(0.5),
    '-': () => playback.zoomBy(2),
    e: actions.exportSelection,
    p: actions.protect,
    b: actions.bookmark,
    g: actions.goToTime,
    m: () => (playback.isHeard.value = !playback.isHeard.peek()),
    f: actions.fullScreen,
    s: actions.saveStill,
  };
}
