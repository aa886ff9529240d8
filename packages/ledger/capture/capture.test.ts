import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { openCipher } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { capturePath, openCapture, sealCapture } from './capture.ts'

const argsSha256 = 'ab'.repeat(32)
const random = (bytes: number) => randomBytes(bytes)

async function cipherIn() {
  const dir = tempFolder()
  await writeFile(path.join(dir, 'key'), randomBytes(32).toString('base64'))
  return openCipher(path.join(dir, 'key'))
}

test('a capture opens under its own key only, and not after any change', async () => {
  const cipher = await cipherIn()
  const capture = { namespace: 'default', argsSha256, args: Buffer.from('{"says":"hi"}') }
  const text = await sealCapture(capture, { cipher, random })
  assert.ok(!text.includes('says'))
  assert.deepEqual(await openCapture(text, cipher), capture)
  assert.equal(await openCapture(text, await cipherIn()), null)
  for (const from of ['"default"', argsSha256, '"data":"', '"key":"', '"nonce":"', '"v":1']) {
    const at = text.indexOf(from) + from.length - 1
    const other = from === '"v":1' ? '2' : text[at] === 'A' ? 'B' : 'A'
    const changed = from.endsWith('"') && from.startsWith('"default') ? text.replace('default', 'other') : text
    const broken = changed === text ? text.slice(0, at) + other + text.slice(at + 1) : changed
    assert.equal(await openCapture(broken, cipher), null, from)
  }
  for (const none of ['', '{}', 'null', '[]', 'not json']) assert.equal(await openCapture(none, cipher), null)
})

test('the file of a capture is below its namespace, and no name escapes the folder', () => {
  assert.equal(capturePath('/c', { namespace: 'default', argsSha256 }), `/c/default/ab/${argsSha256}.cap`)
  for (const namespace of ['..', '.', '', 'a/b', 'a\\b', 'a\0'])
    assert.equal(capturePath('/c', { namespace, argsSha256 }), null)
  for (const wrong of ['', '../../x', argsSha256.toUpperCase()]) {
    assert.equal(capturePath('/c', { namespace: 'default', argsSha256: wrong }), null)
  }
})
