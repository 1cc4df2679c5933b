// An attempt to sign in: what the recorder has answered, and when it is asked again.

import { useEffect, useState } from 'preact/hooks';
import { Problem, wordsOf } from './api.ts';
import { signIn, type Credentials } from './session.ts';

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'checking' }
  | { readonly kind: 'wrong'; readonly text: string }
  | { readonly kind: 'locked'; readonly untilMs: number }
  | { readonly kind: 'away' };

interface SigningIn {
  readonly state: State;
  /** While it is locked. */
  readonly secondsLeft: number;
  readonly attempt: () => Promise<void>;
  /** Forgets the last answer. */
  readonly reset: () => void;
}

const RETRY_MS = 2_000;

/** `onRefused`: the recorder has not accepted the credentials. */
export function useSigningIn(credentials: Credentials, onRefused: () => void): SigningIn {
  const [state, setState] = useState<State>({ kind: 'idle' });
  const [secondsLeft, setSecondsLeft] = useState(0);

  async function attempt(): Promise<void> {
    setState({ kind: 'checking' });
    try {
      await signIn(credentials);
    } catch (error) {
      const failed = stateAfter(error, credentials);
      if (failed.kind === 'wrong') onRefused();
      setState(failed);
    }
  }

  // While the recorder is away, the form keeps its values and is submitted again.
  useEffect(() => {
    if (state.kind === 'away') {
      const timer = setTimeout(() => void attempt(), RETRY_MS);
      return () => clearTimeout(timer);
    }
    if (state.kind === 'locked') {
      const count = (): void => {
        const seconds = Math.ceil((state.untilMs - performance.now()) / 1000);
        setSecondsLeft(seconds);
        if (seconds <= 0) setState({ kind: 'idle' });
      };
      count();
      const timer = setInterval(count, 250);
      return () => clearInterval(timer);
    }
    return undefined;
  }, [state]);

  return { state, secondsLeft, attempt, reset: () => setState({ kind: 'idle' }) };
}

function stateAfter(error: unknown, credentials: Credentials): State {
  if (!(error instanceof Problem)) return { kind: 'away' };
  if (error.status === 429) {
    return { kind: 'locked', untilMs: performance.now() + (error.retryAfterSeconds ?? 1) * 1000 };
  }
  const text = 'token' in credentials ? 'The recorder does not accept this token' : 'Wrong name or password';
  return { kind: 'wrong', text: error.status === 401 ? text : wordsOf(error) };
}
