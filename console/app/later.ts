// The views and dialogues that nobody needs at the first look: one part of the page, which is loaded when the first of them is opened.

export { AddView as add } from '../add/view.ts';
export { AlarmsView as alarms } from '../alarms/view.ts';
export { BookmarkDialog } from '../exports/bookmark-dialog.ts';
export { CaseDialog } from '../exports/case-dialog.ts';
export { ProtectDialog } from '../exports/protect-dialog.ts';
export { ExportsView as exports } from '../exports/view.ts';
export { HealthView as health } from '../health/view.ts';
export { PtzPad } from '../live/ptz.ts';
export { EventList } from '../playback/event-list.ts';
export { ChangeList } from '../playback/change-list.ts';
export { SearchArea } from '../playback/search-area.ts';
export { Help } from './help.ts';
export { Facts } from '../live/facts.ts';
export { StopDialog } from '../live/stop.ts';
export { PasswordDialog } from './password-dialog.ts';
export { CameraView as camera } from '../settings/view.ts';
