// Buttons that turn and zoom a camera: it moves while one is held and stops when it is let go.

/** The recorder stops a move that is not repeated within `ptz.moveTimeout`: 10 s by default, at least 3 s. */
const REPEAT_EVERY_MS = 2_000;
const PROBLEM_SHOWN_MS = 5_000;

const BUTTONS = [
  { name: 'up', label: 'Up', tilt: 1, path: 'm6 15 6-6 6 6' },
  { name: 'left', label: 'Left', pan: -1, path: 'm15 6-6 6 6 6' },
  { name: 'right', label: 'Right', pan: 1, path: 'm9 6 6 6-6 6' },
  { name: 'down', label: 'Down', tilt: -1, path: 'm6 9 6 6 6-6' },
  { name: 'in', label: 'Zoom in', zoom: 1, path: 'M12 6v12M6 12h12' },
  { name: 'out', label: 'Zoom out', zoom: -1, path: 'M6 12h12' },
];

export class PtzControls {
  element = document.createElement('div');
  #post;
  #cameraId;
  /** Requests are sent one after the other: a stop must not overtake its move. */
  #sent = Promise.resolve();
  #waiting = 0;
  #repeat;
  #problem = document.createElement('p');
  #problemTimer;

  /** @param {string} cameraId @param {(path: string, value: unknown) => Promise<unknown>} post rejects with an Error to show */
  constructor(cameraId, post) {
    this.#cameraId = cameraId;
    this.#post = post;
    this.element.className = 'ptz';
    this.#problem.className = 'ptz-problem';
    this.#problem.setAttribute('role', 'status');
    this.element.append(...BUTTONS.map((button) => this.#button(button)), this.#problem);
    document.addEventListener('visibilitychange', this.#release);
  }

  remove() {
    this.#release();
    document.removeEventListener('visibilitychange', this.#release);
    clearTimeout(this.#problemTimer);
    this.element.remove();
  }

  #button({ name, label, path, pan = 0, tilt = 0, zoom = 0 }) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = `ptz-${name}`;
    button.title = label;
    button.setAttribute('aria-label', label);
    button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${path}" /></svg>`;
    const press = () => this.#press({ pan, tilt, zoom });
    button.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      button.setPointerCapture(event.pointerId);
      press();
    });
    button.addEventListener('keydown', (event) => {
      if (event.repeat || (event.key !== 'Enter' && event.key !== ' ')) return;
      event.preventDefault();
      press();
    });
    for (const type of ['pointerup', 'pointercancel', 'lostpointercapture', 'keyup', 'blur']) {
      button.addEventListener(type, this.#release);
    }
    // A long touch of a button must not open the context menu.
    button.addEventListener('contextmenu', (event) => event.preventDefault());
    return button;
  }

  #press(movement) {
    clearInterval(this.#repeat);
    const move = () => this.#send('move', { camera_id: this.#cameraId, ...movement });
    this.#repeat = setInterval(() => this.#waiting === 0 && move(), REPEAT_EVERY_MS);
    move();
  }

  #release = () => {
    if (this.#repeat === undefined) return;
    clearInterval(this.#repeat);
    this.#repeat = undefined;
    this.#send('stop', { camera_id: this.#cameraId });
  };

  #send(command, value) {
    const before = this.#sent;
    this.#waiting++;
    this.#sent = (async () => {
      await before;
      try {
        // The button may have been released while another request was pending.
        if (command === 'stop' || this.#repeat !== undefined) await this.#post(`/api/ptz/${command}`, value);
      } catch (error) {
        this.#show(error.message);
      }
      this.#waiting--;
    })();
  }

  #show(message) {
    this.#problem.textContent = message;
    clearTimeout(this.#problemTimer);
    this.#problemTimer = setTimeout(() => {
      this.#problem.textContent = '';
    }, PROBLEM_SHOWN_MS);
  }
}
