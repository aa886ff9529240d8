import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  cutText,
  keyEvent,
  pointerEvent,
  qemuKeyEvent,
  setEncodings,
  setPixelFormat,
  updateRequest,
} from '../testing/messages.ts'
import { RfbError } from './error.ts'
import { ViewerMessages } from './viewer-messages.ts'

const ZRLE = 16

/** Every message that is relayed in some mode, and what a viewer that may only watch gets through. */
const ALL = [
  setPixelFormat(),
  setEncodings(ZRLE, 0, -223, -224, -247),
  keyEvent(),
  updateRequest(),
  pointerEvent(),
  cutText('pasted'),
  cutText(''),
  qemuKeyEvent(),
  updateRequest(true),
]
const WATCHED = [setPixelFormat(), setEncodings(ZRLE, 0, -223, -224, -247), updateRequest(), updateRequest(true)]

function pushed(chunks: readonly Uint8Array[], mayAct: boolean) {
  const messages = new ViewerMessages({ mayAct })
  const out = Buffer.concat(chunks.map((chunk) => messages.push(chunk)))
  return { out, messages }
}

test('a viewer that watches changes no key, no pointer and no text of the sandbox', () => {
  const { out, messages } = pushed([Buffer.concat(ALL)], false)
  assert.deepEqual(out, Buffer.concat(WATCHED))
  assert.deepEqual([messages.inputs, messages.dropped], [0, 5])
})

test('a viewer in control sends all of them', () => {
  const { out, messages } = pushed([Buffer.concat(ALL)], true)
  assert.deepEqual(out, Buffer.concat(ALL))
  assert.deepEqual([messages.inputs, messages.dropped], [5, 0])
})

test('the result does not depend on where the bytes are cut', () => {
  const bytes = Buffer.concat(ALL)
  for (const mayAct of [false, true]) {
    const { out } = pushed([bytes], mayAct)
    for (let at = 0; at <= bytes.length; at++) {
      assert.deepEqual(pushed([bytes.subarray(0, at), bytes.subarray(at)], mayAct).out, out, `cut at ${at}`)
    }
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
    assert.deepEqual(pushed(single, mayAct).out, out, 'one byte at a time')
  }
})

test('encodings that change the messages, act, or need an image decoder are not forwarded', () => {
  const refused = [7, 21, -260, -239, -307, -308, -309, -312, -313, -316, -258, -32, 0xc0a1e5ce | 0, 0x574d5664, 50]
  assert.deepEqual(pushed([setEncodings(...refused, ZRLE)], false).out, setEncodings(ZRLE))
  assert.deepEqual(pushed([setEncodings(...refused)], false).out, setEncodings())
  assert.deepEqual(pushed([setEncodings(...refused)], true).out, setEncodings(-258))
})

test('every other message type ends the view, whatever the mode', () => {
  const known = new Set([0, 2, 3, 4, 5, 6, 255])
  for (let type = 0; type < 256; type++) {
    if (known.has(type)) continue
    for (const mayAct of [false, true]) {
      assert.throws(() => pushed([Buffer.from([type])], mayAct), RfbError, `type ${type}`)
      assert.throws(() => pushed([updateRequest(), Buffer.from([type, 0, 0, 0])], mayAct), RfbError)
    }
  }
})

test('sizes beyond the limits and invalid values are refused before their bytes are read', () => {
  const head = (type: number, ...rest: readonly number[]) => Buffer.from([type, ...rest])
  for (const mayAct of [false, true]) {
    assert.throws(() => pushed([head(2, 0, 1, 1)], mayAct), /more than 256 encodings/)
    assert.throws(() => pushed([head(2, 0, 0xff, 0xff)], mayAct), /more than 256 encodings/)
    assert.throws(() => pushed([cutText('', 256 * 1024 + 1)], mayAct), /a text of more than/)
    assert.throws(() => pushed([cutText('', 0xffff_fffc)], mayAct), /a text of more than/)
    assert.throws(() => pushed([qemuKeyEvent(1)], mayAct), /no key event/)
    for (const bits of [0, 1, 24, 33, 255]) assert.throws(() => pushed([setPixelFormat(bits)], mayAct), /bits/)
  }
  assert.equal(pushed([setEncodings(...Array.from({ length: 256 }, () => ZRLE))], false).out.length, 4 + 256 * 4)
})

test('input in a text is text: its bytes are no messages', () => {
  const text = Buffer.concat([pointerEvent(), keyEvent(), updateRequest()])
  assert.deepEqual(pushed([cutText(text), updateRequest()], false).out, updateRequest())
  assert.deepEqual(pushed([cutText(text), updateRequest()], true).out, Buffer.concat([cutText(text), updateRequest()]))
})

test('a text is forwarded as it arrives, not held back', () => {
  const messages = new ViewerMessages({ mayAct: true })
  assert.equal(messages.push(cutText('abc', 1000)).length, 11)
  assert.equal(messages.push(Buffer.alloc(996, 'x')).length, 996)
  assert.equal(messages.push(Buffer.concat([Buffer.from('y'), keyEvent()])).length, 9)
})
