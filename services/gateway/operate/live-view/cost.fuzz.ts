import { runInSlices, type Steps } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { ViewerMessages } from './rfb/viewer-messages.ts'
import { cutText, keyEvent, pointerEvent, setEncodings, updateRequest } from './testing/messages.ts'

/** Messages of one viewer together, in bytes. */
const MESSAGES_BYTES = 4 * 1024 * 1024
/** The longest message of a WebSocket. */
const CHUNK_BYTES = 64 * 1024

const repeated = (message: Buffer) => (n: number) =>
  Buffer.concat(Array.from({ length: Math.ceil(n / message.length) }, () => message)).toString('latin1')

const messages: Families = {
  'update requests': repeated(updateRequest()),
  'keys and pointers': repeated(Buffer.concat([keyEvent(), pointerEvent()])),
  'long lists of encodings': repeated(setEncodings(...Array.from({ length: 256 }, (_, at) => at - 128))),
  'short lists of encodings': repeated(setEncodings()),
  'long texts': repeated(cutText('x'.repeat(256 * 1024))),
  'empty texts': repeated(cutText('')),
}

const rowOf = (part: string, { mayAct, chunkBytes }: { mayAct: boolean; chunkBytes: number }): Row => ({
  parser: 'messages of viewers',
  part,
  limit: chunkBytes === 1 ? MESSAGES_BYTES / 8 : MESSAGES_BYTES,
  families: messages,
  prepare(input) {
    const bytes = Buffer.from(input, 'latin1')
    return () => runInSlices(pushed(bytes, new ViewerMessages({ mayAct }), chunkBytes))
  },
})

/** Each message of the WebSocket is handled in a separate turn. */
function* pushed(bytes: Buffer, viewer: ViewerMessages, chunkBytes: number): Steps<number> {
  let forwarded = 0
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    forwarded += viewer.push(bytes.subarray(at, at + chunkBytes)).length
    yield
  }
  return forwarded
}

export const target = costTarget('cost/gateway live views', [
  rowOf('watching', { mayAct: false, chunkBytes: CHUNK_BYTES }),
  rowOf('in control', { mayAct: true, chunkBytes: CHUNK_BYTES }),
  rowOf('a byte at a time', { mayAct: true, chunkBytes: 1 }),
])
