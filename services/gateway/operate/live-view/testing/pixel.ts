import { until } from '@plat/testkit/until'
import type { TestViewer } from './viewer.ts'

/** The handshake before the format of pixels: version, types, result, width and height. */
const FORMAT_AT = 12 + 2 + 4 + 4
const RECTANGLE_BYTES = 12
/** Messages of servers (RFC 6143, section 7.6). */
const UPDATE = 0
const BELL = 2
const CUT_TEXT = 3

/** How far each viewer has been read. */
const positions = new WeakMap<TestViewer, number>()

/** Requests the whole screen in raw pixels of 32 bits; returns red, green and blue of one of them. */
export async function pixelOf(
  viewer: TestViewer,
  { width, height, x, y }: { readonly width: number; readonly height: number; readonly x: number; readonly y: number },
): Promise<readonly number[]> {
  const request = Buffer.alloc(10)
  request.writeUInt8(3)
  request.writeUInt16BE(width, 6)
  request.writeUInt16BE(height, 8)
  viewer.send(request)
  const screen = Buffer.alloc(width * height * 4)
  let read = 0
  while (read < width * height) read += await readUpdate(viewer, screen, width)
  const pixel = screen.readUInt32LE((y * width + x) * 4)
  return [10, 11, 12].map((at) => (pixel >>> viewer.received().readUInt8(FORMAT_AT + at)) & 0xff)
}

/** Reads one message of the server into `screen`; returns the pixels that it had. */
async function readUpdate(viewer: TestViewer, screen: Buffer, width: number): Promise<number> {
  const bytes = async (count: number) => {
    const at = positions.get(viewer) ?? handshakeBytes(viewer)
    await until(() => viewer.received().length >= at + count, 'an update of the screen')
    positions.set(viewer, at + count)
    return viewer.received().subarray(at, at + count)
  }
  const type = (await bytes(1)).readUInt8(0)
  if (type === BELL) return 0
  if (type === CUT_TEXT) {
    await bytes((await bytes(7)).readUInt32BE(3))
    return 0
  }
  if (type !== UPDATE) throw new Error(`the server sent message ${type}`)
  let pixels = 0
  for (let count = (await bytes(3)).readUInt16BE(1); count > 0; count--) {
    const rectangle = await bytes(RECTANGLE_BYTES)
    const [x, y, w, h] = [0, 2, 4, 6].map((at) => rectangle.readUInt16BE(at))
    // The size of the screen is announced as a rectangle without pixels.
    if (x === undefined || y === undefined || !w || !h || rectangle.readInt32BE(8) !== 0) continue
    const data = await bytes(w * h * 4)
    for (let row = 0; row < h; row++) data.copy(screen, ((y + row) * width + x) * 4, row * w * 4, (row + 1) * w * 4)
    pixels += w * h
  }
  return pixels
}

function handshakeBytes(viewer: TestViewer): number {
  return FORMAT_AT + 16 + 4 + viewer.received().readUInt32BE(FORMAT_AT + 16)
}
