import { test } from 'node:test';
import assert from 'node:assert/strict';
import fc from '../../test/support/fast-check.ts';
import { notificationsIn, typesOffered } from './notification.ts';
import { parseXml } from '../../base/xml.ts';

const answer = (topic: string, message: string): string =>
  `<PullMessagesResponse><NotificationMessage><Topic>${topic}</Topic><Message>${message}</Message></NotificationMessage></PullMessagesResponse>`;
const message = (items: string, operation = 'Changed'): string =>
  `<Message UtcTime="2026-11-21T10:00:00Z" PropertyOperation="${operation}"><Source/><Data>${items}</Data></Message>`;
const item = (name: string, value: string): string => `<SimpleItem Name="${name}" Value="${value}"/>`;
const read = (topic: string, items: string, operation?: string) =>
  notificationsIn(parseXml(answer(topic, message(items, operation)))).map(({ type, isActive }) => [type, isActive]);

for (const [topic, items, type, isActive] of [
  ['tns1:RuleEngine/CellMotionDetector/Motion', item('IsMotion', 'true'), 'motion', true],
  ['tns1:VideoSource/tns1:MotionAlarm', item('State', '0'), 'motion', false],
  ['tnsaxis:CameraApplicationPlatform/VMD/Camera1Profile1', item('active', '1'), 'motion', true],
  ['tns1:RuleEngine/TamperDetector/Tamper', item('IsTamper', 'true'), 'tampering', true],
  ['tns1:VideoSource/GlobalSceneChange/ImagingService', item('State', 'true'), 'tampering', true],
  ['tns1:Device/Trigger/DigitalInput', item('LogicalState', 'true'), 'digital-input', true],
  ['tns1:RuleEngine/LineDetector/Crossed', item('ObjectId', '1'), 'line-crossed', undefined],
  ['tns1:RuleEngine/FieldDetector/ObjectsInside', item('IsInside', 'true'), 'object-in-area', true],
  ['tns1:AudioAnalytics/Audio/DetectedSound', item('IsSoundDetected', 'true'), 'sound', true],
  ['tns1:RuleEngine/MyRuleDetector/PeopleDetect', item('State', 'true'), 'person', true],
  ['tns1:RuleEngine/MyRuleDetector/VehicleDetect', item('State', 'false'), 'vehicle', false],
  ['tns1:RuleEngine/MyRuleDetector/DogCatDetect', item('State', 'true'), 'animal', true],
  ['tns1:RuleEngine/TPSmartEventDetector/TPSmartEvent', item('IsPeople', 'true'), 'person', true],
] as const) {
  test(`notification ${topic} is ${type}, ${isActive ?? 'without a state'}`, () => {
    assert.deepEqual(read(topic, items), [[type, isActive]]);
  });
}

test('notifications of other topics, and those without a message, are left out', () => {
  assert.deepEqual(read('tns1:Device/Trigger/Relay', item('LogicalState', 'active')), []);
  assert.deepEqual(read('tns1:Monitoring/ProcessorUsage', item('Value', '1')), []);
  assert.deepEqual(notificationsIn(parseXml(answer('tns1:VideoSource/MotionAlarm', ''))), []);
  assert.deepEqual(notificationsIn(parseXml('<PullMessagesResponse/>')), []);
});

test('a state that is deleted has ended, and the present state of what has none is nothing that happened', () => {
  assert.deepEqual(read('tns1:VideoSource/MotionAlarm', item('State', 'true'), 'Deleted'), [['motion', false]]);
  assert.deepEqual(read('tns1:RuleEngine/LineDetector/Crossed', item('ObjectId', '1'), 'Initialized'), []);
});

test('whatever a camera tells is read or left out, in bounded texts', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 400 }).map((any) => any.replaceAll(/[<>&"\p{C}]/gu, ''));
  fc.assert(
    fc.property(text, text, text, (topic, name, value) => {
      const xml = answer(`a:Motion/${topic}`, message(item(name, value)));
      for (const { key, data } of notificationsIn(parseXml(xml))) {
        assert.ok(key.length <= 10_000);
        assert.ok(Object.entries(data).every(([item, told]) => item.length <= 400 && told.length <= 800));
      }
    }),
  );
});

test('what a camera offers is listed by type, each once', () => {
  const set =
    '<GetEventPropertiesResponse><TopicSet><RuleEngine><CellMotionDetector><Motion topic="true"/></CellMotionDetector>' +
    '<TamperDetector><Tamper topic="true"/></TamperDetector></RuleEngine>' +
    '<VideoSource><MotionAlarm topic="true"/></VideoSource><Device><Trigger><Relay topic="true"/></Trigger></Device>' +
    '</TopicSet></GetEventPropertiesResponse>';
  assert.deepEqual(typesOffered(parseXml(set)), ['tampering', 'motion']);
  assert.deepEqual(typesOffered(parseXml('<GetEventPropertiesResponse/>')), []);
});
