// Shows a part of the page in full screen.

export async function toggleFullScreen(element: Element | null | undefined): Promise<void> {
  if (document.fullscreenElement) await document.exitFullscreen();
  else await element?.requestFullscreen?.();
}
