/** Maximum offset of an encoding declaration in a document, in bytes (encoding sniffing algorithm of HTML). */
const SNIFFED_BYTES = 1024

const META = /<meta\s[^>]{0,512}?charset\s*=\s*(?:["']\s*)?([\w.:-]{1,40})/i
const XML = /^\s*<\?xml\s[^>]{0,256}?encoding\s*=\s*["']([\w.:-]{1,40})["']/i

/**
 * Decodes a document by its byte order mark, else by the header, else by its declaration, else as
 * UTF-8, with Windows-1252 as fallback. Never throws.
 */
export function decodeText(bytes: Uint8Array, charset: string | null): string {
  const named = [markOf(bytes), charset, sniffed(bytes)]
  for (const label of named) {
    const decoder = label === null ? null : decoderOf(label)
    if (decoder !== null) return decoder.decode(bytes)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder('windows-1252').decode(bytes)
  }
}

function markOf([first, second, third]: Uint8Array): string | null {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  return first === 0xff && second === 0xfe ? 'utf-16le' : null
}

function sniffed(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.subarray(0, SNIFFED_BYTES)).toString('latin1')
  const label = XML.exec(head)?.[1] ?? META.exec(head)?.[1] ?? null
  // Sniffed as ASCII, so it cannot be UTF-16.
  return label !== null && /^utf-?16/i.test(label) ? 'utf-8' : label
}

/** Returns null for an unknown label. */
function decoderOf(label: string): TextDecoder | null {
  try {
    return new TextDecoder(label)
  } catch {
    return null
  }
}
