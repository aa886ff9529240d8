/** Listen address. An undefined `host` listens on every address of the machine. */
export interface ListenAddress {
  readonly host: string | undefined
  readonly port: number
}

const LAST_PORT = 65_535

/** Parses `:8080`, `127.0.0.1:0`, `[::1]:8080` or `localhost:80`. Returns null for any other text. */
export function parseAddress(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]*)):(\d{1,5})$/.exec(text)
  if (match === null) return null
  const port = Number(match[3])
  if (port > LAST_PORT) return null
  const host = match[1] ?? match[2] ?? ''
  return { host: host === '' ? undefined : host, port }
}
