// Plans one movie for each stretch of a window that has one codec. When a camera changed its codec, no single track can contain
// both: browsers and most players accept one sample entry per track.

import type { Interval } from '../../base/interval.ts';
import type { Part } from './box.ts';
import { JoinError } from './join-error.ts';
import {
  JoinPlanner,
  gapsIn,
  type JoinFacts,
  type JoinOptions,
  type JoinPart,
  type JoinPlan,
  type PlacedPart,
} from './join.ts';

export interface PlannedMovie extends JoinPlan {
  /** Index, among all parts, of this movie's part 0. */
  readonly firstPart: number;
}

interface Movie {
  readonly planner: JoinPlanner;
  readonly firstPart: number;
}

/** A camera that changes its codec more often is broken. Each movie costs a table in memory and an open file. */
const MAX_MOVIES = 50;

export class MoviesPlanner {
  readonly #window: Interval;
  readonly #options: JoinOptions;
  readonly #movies: Movie[] = [];
  #parts = 0;
  /** Total duration of all movies before the last one, in video ticks. */
  #elapsed = 0;

  constructor(window: Interval, options: JoinOptions = {}) {
    this.#window = window;
    this.#options = options;
    this.#begin();
  }

  /** True if it is true for any of the movies; see `JoinPlanner`. */
  get parametersDiffer(): boolean {
    return this.#movies.some(({ planner }) => planner.parametersDiffer);
  }

  /** Adds a part; parts must be in the order of recording. Throws JoinError `CODEC_CHANGED` if there would be too many movies. */
  add(part: JoinPart): void {
    try {
      this.#last.add(part);
    } catch (err) {
      const isOther = err instanceof JoinError && err.code === 'CODEC_CHANGED';
      if (!isOther || this.#movies.length === MAX_MOVIES) throw err;
      this.#elapsed += this.#last.durationTicks;
      this.#begin();
      this.#last.add(part);
    }
    this.#parts++;
  }

  /**
   * The plans of the movies. Each movie covers the window up to the start of the next one. `asOne`: they are shown as one movie,
   * whose first part has the description. Throws JoinError if nothing was recorded in the window.
   */
  finish(describe: (facts: JoinFacts, firstPart: number) => Part = () => [], asOne = false): PlannedMovie[] {
    const starts = this.#movies.map(({ planner }) => planner.wallStartMs ?? this.#window.toMs);
    return this.#movies.map(({ planner, firstPart }, i) => {
      const fromMs = i === 0 ? this.#window.fromMs : (starts[i] as number);
      const window = { fromMs, toMs: starts[i + 1] ?? this.#window.toMs };
      const described = (facts: JoinFacts): Part =>
        !asOne ? describe(facts, firstPart) : i === 0 ? describe(this.#together(), 0) : [];
      return { ...planner.finish(described, window), firstPart };
    });
  }

  #together(): JoinFacts {
    const parts: PlacedPart[] = [];
    let elapsedMs = 0;
    for (const { planner, firstPart } of this.#movies) {
      const facts = planner.facts();
      for (const part of facts.parts) {
        const { movieStartMs, movieEndMs } = part;
        const moved = { movieStartMs: movieStartMs + elapsedMs, movieEndMs: movieEndMs + elapsedMs };
        parts.push({ ...part, ...moved, part: part.part + firstPart });
      }
      elapsedMs += facts.durationMs;
    }
    return { window: this.#window, durationMs: elapsedMs, parts, gaps: gapsIn(this.#window, parts) };
  }

  get #last(): JoinPlanner {
    return (this.#movies.at(-1) as Movie).planner;
  }

  #begin(): void {
    const planner = new JoinPlanner(this.#window, { ...this.#options, elapsed: this.#elapsed });
    this.#movies.push({ planner, firstPart: this.#parts });
  }
}
