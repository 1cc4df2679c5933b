// A text that disappears by itself, such as why something was refused.

import { useEffect, useState } from 'preact/hooks';

/** The text, empty when its time is over, and how to show another one. */
export function usePassing(shownMs: number): readonly [text: string, show: (text: string) => void] {
  const [text, show] = useState('');
  useEffect(() => {
    if (text === '') return undefined;
    const timer = setTimeout(() => show(''), shownMs);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, show];
}
