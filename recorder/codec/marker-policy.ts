// Whether the marker bit ends a picture: what one camera has shown so far.
//
// Some cameras set the marker on each slice (iamscottxu/obs-rtspserver PR#199). They are found out by waiting: behind
// the marker of the first pictures and of the first key pictures, the next packet is looked at before the access unit
// is let go. When a further slice of the same picture follows, every picture is from then on ended by what comes behind
// it, one packet later. Otherwise markers are trusted and cost no delay.

/** Encoders that cut slices by size have one in a small picture and many in a key picture: both are watched. */
const PICTURES_TO_WATCH = 3;
const KEY_PICTURES_TO_WATCH = 2;

export class MarkerPolicy {
  #pictures = 0;
  #keyPictures = 0;
  #perSlice = false;
  #seen = false;

  /** Markers stand on each slice: they say nothing about the end of a picture. */
  get perSlice(): boolean {
    return this.#perSlice;
  }

  /** False for a camera that has never set a marker behind a slice, as FLIR M400. */
  get seen(): boolean {
    return this.#seen;
  }

  /** A marker stands behind a slice. Whether the picture may be let go now, before the next packet. */
  isEnd(keyPicture: boolean): boolean {
    this.#seen = true;
    if (this.#perSlice || this.#pictures < PICTURES_TO_WATCH) return false;
    return !keyPicture || this.#keyPictures >= KEY_PICTURES_TO_WATCH;
  }

  /** A picture with a marker has ended there. */
  noteEnd(keyPicture: boolean): void {
    if (this.#pictures < PICTURES_TO_WATCH) this.#pictures++;
    if (keyPicture && this.#keyPictures < KEY_PICTURES_TO_WATCH) this.#keyPictures++;
  }

  /** A slice came behind a marker on its own picture. */
  noteFurtherSlice(): void {
    this.#perSlice = true;
  }
}
