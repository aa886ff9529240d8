/** Messages of a viewer (RFC 6143, section 7.5). */

export function setPixelFormat(bits = 32): Buffer {
  const message = Buffer.alloc(20)
  message.writeUInt8(bits, 4)
  message.writeUInt8(bits === 32 ? 24 : bits, 5)
  return message
}

export function setEncodings(...encodings: readonly number[]): Buffer {
  const message = Buffer.alloc(4 + encodings.length * 4)
  message.writeUInt8(2)
  message.writeUInt16BE(encodings.length, 2)
  for (const [at, encoding] of encodings.entries()) message.writeInt32BE(encoding, 4 + at * 4)
  return message
}

export function updateRequest(isIncremental = false): Buffer {
  const message = Buffer.alloc(10)
  message.writeUInt8(3)
  message.writeUInt8(isIncremental ? 1 : 0, 1)
  message.writeUInt16BE(4, 6)
  message.writeUInt16BE(4, 8)
  return message
}

export function keyEvent(key = 0x61): Buffer {
  const message = Buffer.alloc(8)
  message.writeUInt8(4)
  message.writeUInt8(1, 1)
  message.writeUInt32BE(key, 4)
  return message
}

export function pointerEvent(buttons = 1): Buffer {
  const message = Buffer.alloc(6)
  message.writeUInt8(5)
  message.writeUInt8(buttons, 1)
  return message
}

export function cutText(text: string | Buffer, length = Buffer.from(text).length): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt8(6)
  head.writeUInt32BE(length, 4)
  return Buffer.concat([head, Buffer.from(text)])
}

export function qemuKeyEvent(subtype = 0): Buffer {
  const message = Buffer.alloc(12)
  message.writeUInt8(255)
  message.writeUInt8(subtype, 1)
  return message
}
