import type { UploadedFile } from '../uploads/read.ts'

const FORMATS: ReadonlySet<number> = new Set([1, 3])
/** Length of the head of a RIFF file, and of a chunk in it. */
const RIFF_BYTES = 12
const CHUNK_HEAD_BYTES = 8
const FORMAT_BYTES = 16

/**
 * Returns the most seconds of sound in the files of a request; null: not known. Only WAV without compression has a length that its bytes
 * bound: a compressed file may hold hours of silence.
 */
export function secondsAtMost(files: readonly Pick<UploadedFile, 'head' | 'size'>[]): number | null {
  let seconds = 0
  for (const { head, size } of files) {
    const rate = bytesPerSecond(Buffer.from(head.buffer, head.byteOffset, head.byteLength))
    if (rate === null) return null
    seconds += size / rate
  }
  return Math.ceil(seconds)
}

/** Returns how many bytes a second of sound has, by the format that decoders go by; null: this is not such a file. */
function bytesPerSecond(head: Buffer): number | null {
  if (head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8, RIFF_BYTES) !== 'WAVE') return null
  for (let at = RIFF_BYTES; at + CHUNK_HEAD_BYTES + FORMAT_BYTES <= head.length; ) {
    const size = head.readUInt32LE(at + 4)
    if (head.toString('latin1', at, at + 4) === 'fmt ') {
      const body = at + CHUNK_HEAD_BYTES
      const [format, channels] = [head.readUInt16LE(body), head.readUInt16LE(body + 2)]
      const [rate, bits] = [head.readUInt32LE(body + 4), head.readUInt16LE(body + 14)]
      const bytes = rate * channels * Math.floor(bits / 8)
      return FORMATS.has(format) && bytes > 0 ? bytes : null
    }
    // Chunks begin at even positions.
    at += CHUNK_HEAD_BYTES + size + (size % 2)
  }
  return null
}
