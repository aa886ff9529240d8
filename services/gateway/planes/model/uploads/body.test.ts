import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDenial } from '../../../call/index.ts'
import { imageEdits } from '../dialects/media.ts'
import { uploadBody } from './body.ts'
import type { UploadedFile } from './read.ts'

const image: UploadedFile = {
  ...{ part: 'image', filename: 'a.png', type: 'image/png', size: 1, sha256: '', head: new Uint8Array() },
  async *read() {
    yield Buffer.from('x')
  },
}

test('a file name that redaction changed cannot end its quotes or its line', async () => {
  const fields = [
    ['model', 'i'],
    ['prompt', 'p'],
  ] as const
  const body = uploadBody({ fields, files: [image] }, imageEdits)
  assert.ok(!isDenial(body))
  const renamed = { ...body.value, files: [{ part: 'image', filename: 'a"; name="mask"\r\nX-Own: 1\\' }] }
  const changed = body.rewritten(Buffer.from(JSON.stringify(renamed)))
  assert.ok(!isDenial(changed))
  const chunks: Uint8Array[] = []
  for await (const chunk of changed.encoded('i', 'b').chunks()) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  assert.match(
    text,
    /name="image"; filename="a_; name=_mask___X-Own: 1_"\r\nContent-Type: image\/png\r\n\r\nx\r\n--b--/,
  )
})
