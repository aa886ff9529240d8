import { isUtf8 } from 'node:buffer'
import { SseSplitter } from '../../wire/sse.ts'
import type { Events } from '../dialects/dialect.ts'
import type { ModelFrame } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'

/** The frames that an `EventReader` must return, from a splitter and a check of each event. */
export function readAlone(dialect: Events, bytes: Buffer): readonly ModelFrame[] {
  const frames: ModelFrame[] = []
  if (!isUtf8(bytes)) return frames
  for (const event of new SseSplitter().push(bytes)) {
    if (event[0] === 0x0a || event.includes(0x0d)) break
    try {
      const frame = dialect.frame(event)
      frames.push(frame)
      if (frame.role === 'final') break
    } catch (error) {
      if (error instanceof InvalidResponseError) break
      throw error
    }
  }
  return frames
}
