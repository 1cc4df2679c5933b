// Searches for cameras in the networks of the recorder, and adds them. Results are kept while the page is open.

import { signal } from '@preact/signals';
import { api, request, wordsOf } from '../app/api.ts';
import { refreshCameras } from '../app/cameras.ts';

export interface FoundCamera {
  readonly id: string;
  readonly name: string | null;
  readonly maker: string | null;
  readonly model: string | null;
  readonly address: string;
  /** Without a login, as the three below. */
  readonly source: string;
  readonly preview: string | null;
  readonly snapshot: string | null;
  readonly onvif: string;
  readonly ptz: boolean;
  readonly video: { readonly codec: string; readonly width: number; readonly height: number } | null;
  readonly is_known: boolean;
  readonly config: string;
  readonly manifest: string;
}

interface Found {
  readonly cameras: readonly FoundCamera[];
  readonly left_out: readonly { readonly address: string; readonly model: string | null; readonly problem: string }[];
  readonly problems: readonly string[];
}

interface Login {
  readonly user: string;
  readonly password: string;
}

type Search =
  | { readonly kind: 'idle' }
  | { readonly kind: 'searching' }
  | { readonly kind: 'failed'; readonly problem: string }
  | { readonly kind: 'done'; readonly found: Found };

/** How long the recorder waits for answers. */
export const SEARCH_SECONDS = 4;

export const search = signal<Search>({ kind: 'idle' });
/** The login of the cameras; kept in memory only. */
export const login = signal<Login>({ user: '', password: '' });

export async function searchCameras(): Promise<void> {
  search.value = { kind: 'searching' };
  const { user, password } = login.peek();
  const body = { seconds: SEARCH_SECONDS, ...(user === '' ? {} : { login: { user, password } }) };
  try {
    const found = await api<Found>('/api/cameras/discover', { method: 'POST', body });
    search.value = { kind: 'done', found };
  } catch (error) {
    search.value = { kind: 'failed', problem: wordsOf(error) };
  }
}

/** The address with the login that was typed. */
function withLogin(source: string, { user, password }: Login): string {
  if (user === '') return source;
  return source.replace('://', `://${encodeURIComponent(user)}:${encodeURIComponent(password)}@`);
}

/** Adds a camera to the configuration; it is recorded from then on. Rejects with Problem. */
export async function addCamera(settings: Readonly<Record<string, unknown>> & { readonly id: string }): Promise<void> {
  await api('/api/cameras', { method: 'POST', body: settings });
  await refreshCameras();
}

export const settingsOf = ({ id, name, source, preview, snapshot, ptz, onvif }: FoundCamera, by: Login) => ({
  id,
  ...(name === null ? {} : { name }),
  source: withLogin(source, by),
  ...(preview === null ? {} : { preview: { source: preview } }),
  ...(snapshot === null ? {} : { snapshot }),
  ...(ptz ? { ptz: true } : {}),
  onvif,
});

/** A picture that the camera makes now. Rejects with Problem. */
export async function stillOf({ source, snapshot }: FoundCamera, by: Login, signal: AbortSignal): Promise<Blob> {
  const body = { source: withLogin(source, by), snapshot };
  return (await request('/api/cameras/test/still', { method: 'POST', body, signal })).blob();
}
