import { readFile } from 'node:fs/promises'
import { type TokenSource, TokenUnavailableError } from './source.ts'

/**
 * A token in a file that somebody else keeps fresh, such as a mounted Secret. It is read again before the token ends.
 *
 * @example
 * const session = await connect({ gatewayURL: 'https://gateway.example.com', source: tokenFile('/var/run/plat/token') })
 */
export function tokenFile(path: string): TokenSource {
  return {
    name: `the file ${path}`,
    async issue() {
      return { token: await readToken(path) }
    },
  }
}

/**
 * One token and no other: when it ends, so does the session.
 *
 * @example
 * const session = await connect({ gatewayURL, source: fixedToken(token) })
 */
export function fixedToken(token: string): TokenSource {
  let given = false
  return {
    name: 'the given token',
    async issue() {
      if (given) throw new TokenUnavailableError('it cannot be renewed')
      given = true
      return { token }
    },
  }
}

/** The only line of a file. */
export async function readToken(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    throw new TokenUnavailableError(`the file ${path} cannot be read (${code})`, { retryable: true })
  })
  const token = text.trim()
  if (token === '') throw new TokenUnavailableError(`the file ${path} is empty`, { retryable: true })
  return token
}
