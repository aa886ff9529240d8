import type { Duplex, Readable } from 'node:stream'
import { RfbError } from './error.ts'

/** Longest name of a screen, and longest reason of a refusal, in bytes. */
const MAX_TEXT_BYTES = 4096
const VERSION_BYTES = 12
const VERSION = /^RFB (\d{3})\.(\d{3})\n$/
const VERSION_3_8 = 'RFB 003.008\n'
const NO_SECURITY = 1
/** Width, height, and the format of pixels. */
const SCREEN_BYTES = 20

/** Width, height and format of pixels, as the server sent them (RFC 6143, section 7.3.2). */
export type Screen = Buffer

/**
 * The handshake with a sandbox, as its client (RFC 6143, section 7.1). The screen is shared: a viewer ends no other one. Throws RfbError, also where a
 * password is required: who may view is for this gateway to decide.
 */
export async function greetSandbox(stream: Duplex): Promise<Screen> {
  const read = (bytes: number) => readExactly(stream, bytes, 'sandbox')
  const [, major, minor] = VERSION.exec((await read(VERSION_BYTES)).toString('latin1')) ?? []
  if (major === undefined || minor === undefined) throw new RfbError('sandbox', 'the endpoint does not speak RFB')
  const version = Number(major) * 1000 + Number(minor)
  const minorVersion = version >= 3008 ? 8 : version === 3007 ? 7 : 3
  stream.write(`RFB 003.00${minorVersion}\n`)
  await (minorVersion === 3 ? demandNoSecurity(read) : chooseNoSecurity(stream, read))
  if (minorVersion === 8 && (await read(4)).readUInt32BE(0) !== 0)
    throw new RfbError('sandbox', 'the endpoint refuses viewers')
  stream.write(Buffer.from([1]))
  const screen = await read(SCREEN_BYTES)
  const nameBytes = (await read(4)).readUInt32BE(0)
  if (nameBytes > MAX_TEXT_BYTES) throw new RfbError('sandbox', `a name of more than ${MAX_TEXT_BYTES} bytes`)
  if (nameBytes > 0) await read(nameBytes)
  return screen
}

/** The handshake with a viewer, as its server, which only RFB 3.8 without a password can pass: it has authenticated with the request. */
export async function greetViewer(stream: Duplex, screen: Screen, name: string): Promise<void> {
  const read = (bytes: number) => readExactly(stream, bytes, 'viewer')
  stream.write(VERSION_3_8)
  if ((await read(VERSION_BYTES)).toString('latin1') !== VERSION_3_8) throw new RfbError('viewer', 'speaks no RFB 3.8')
  stream.write(Buffer.from([1, NO_SECURITY]))
  if ((await read(1)).readUInt8(0) !== NO_SECURITY)
    throw new RfbError('viewer', 'chose a security type that was not offered')
  stream.write(Buffer.alloc(4))
  // Whether the screen is shared is not the viewer's choice.
  await read(1)
  const text = Buffer.from(name)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  stream.write(Buffer.concat([screen, length, text]))
}

/** RFB 3.7 and later: the server offers types, and the client chooses. */
async function chooseNoSecurity(stream: Duplex, read: (bytes: number) => Promise<Buffer>): Promise<void> {
  const count = (await read(1)).readUInt8(0)
  if (count === 0) throw new RfbError('sandbox', 'the endpoint refuses viewers')
  if (!(await read(count)).includes(NO_SECURITY)) throw passwordRequired()
  stream.write(Buffer.from([NO_SECURITY]))
}

/** RFB 3.3: the server decides. */
async function demandNoSecurity(read: (bytes: number) => Promise<Buffer>): Promise<void> {
  if ((await read(4)).readUInt32BE(0) !== NO_SECURITY) throw passwordRequired()
}

function passwordRequired(): RfbError {
  return new RfbError(
    'sandbox',
    'the endpoint requires a password: it must require none, and be reachable by the gateway only',
  )
}

/** Reads this many bytes, and leaves the rest in the stream. Throws RfbError if it ends before. */
async function readExactly(stream: Readable, bytes: number, side: RfbError['side']): Promise<Buffer> {
  for (;;) {
    const found: unknown = stream.read(bytes)
    if (found instanceof Buffer && found.length === bytes) return found
    if (found !== null || stream.readableEnded || stream.destroyed)
      throw new RfbError(side, 'ended during the handshake')
    await moreOf(stream)
  }
}

/** Resolves when there is something to read, or the stream has ended. */
function moreOf(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    const events = ['readable', 'end', 'close', 'error'] as const
    const found = () => {
      for (const event of events) stream.off(event, found)
      resolve()
    }
    for (const event of events) stream.on(event, found)
  })
}
