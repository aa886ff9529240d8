/**
 * Encodings that a viewer may request, by number (RFC 6143, section 7.7). Each of them draws pixels, and needs no image decoder of a browser. Others are
 * left out of what is forwarded: some would change the messages that follow (-316 gives pointer events another length), and some add messages with
 * which a viewer acts (-308 resizes the screen, -309 reboots the machine).
 */
const DRAWING: ReadonlySet<number> = new Set([
  0, // Raw
  1, // CopyRect
  2, // RRE
  5, // Hextile
  6, // Zlib
  16, // ZRLE
  -223, // DesktopSize: the server announces another size
  -224, // LastRect
])

/** Compression levels 0 to 9 of Zlib and ZRLE. */
const COMPRESSION = { from: -256, to: -247 }

/** Key events with the key's position: only for who may send keys. */
const QEMU_KEYS = -258

/** Whether an encoding of a viewer is forwarded. */
export function isForwarded(encoding: number, mayAct: boolean): boolean {
  if (DRAWING.has(encoding)) return true
  if (encoding >= COMPRESSION.from && encoding <= COMPRESSION.to) return true
  return mayAct && encoding === QEMU_KEYS
}
