// The field for the name of a person who signs in.

import type { VNode } from 'preact';
import { html } from '../parts/html.ts';

export const USER_NAME = { pattern: String.raw`\S+`, title: 'A name without spaces', maxlength: '100' };

/** An event of an input. */
export interface Typed {
  readonly currentTarget: HTMLInputElement;
}

interface NameFieldProps {
  readonly name: string;
  readonly setName: (name: string) => void;
  /** Attributes that limit a new name. */
  readonly limits?: Readonly<Record<string, string>>;
}

export const NameField = ({ name, setName, limits = {} }: NameFieldProps): VNode =>
  html`<label>
    Name
    <input
      name="username"
      autocomplete="username"
      autocapitalize="none"
      spellcheck=${false}
      ...${limits}
      required
      autofocus
      value=${name}
      onInput=${({ currentTarget }: Typed) => setName(currentTarget.value)}
    />
  </label>`;
