import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHtml, isText, mediaType } from './media.ts'

test('a media type is parsed with its charset, and other texts are refused', () => {
  assert.deepEqual(mediaType(' Text/HTML ; a=b; Charset="UTF-8"'), { type: 'text/html', charset: 'UTF-8' })
  assert.deepEqual(mediaType('text/plain;charset=latin1'), { type: 'text/plain', charset: 'latin1' })
  assert.deepEqual(mediaType('application/json'), { type: 'application/json', charset: null })
  for (const header of [undefined, '', 'text', 'text/', '/html', 'text/html/x', 'te xt/html', 'text/html, a/b']) {
    assert.equal(mediaType(header), null, String(header))
  }
})

test('text types are distinguished from all others', () => {
  const texts = [
    'text/*',
    'text/html',
    'application/ld+json',
    'image/svg+xml',
    'application/xhtml+xml',
    'application/yaml',
  ]
  for (const type of texts) assert.ok(isText(type), type)
  const others = [
    '*/*',
    'application/*',
    'application/pdf',
    'image/png',
    'application/zip',
    'application/octet-stream',
    'json',
  ]
  for (const type of others) assert.ok(!isText(type), type)
  assert.deepEqual(['text/html', 'application/xhtml+xml', 'text/xml'].map(isHtml), [true, true, false])
})
