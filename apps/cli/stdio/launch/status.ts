import { request } from 'node:http'
import { readBody } from '@plat/core'
import { type BridgeStatus, readBridgeStatus, STATUS_PATH } from '../protocol.ts'

/** Time limit, in milliseconds. */
const TIMEOUT_MS = 5_000
const STATUS_MAX_BYTES = 4 * 1024 * 1024

/** Resolves to the status of a running bridge; null if there is none. Never rejects. */
export async function readStdioStatus(socketPath: string): Promise<BridgeStatus | null> {
  try {
    const body = await new Promise<Uint8Array | null>((resolve, reject) => {
      const outgoing = request({ socketPath, path: STATUS_PATH, timeout: TIMEOUT_MS })
      outgoing.on('response', (response) => readBody(response, STATUS_MAX_BYTES).then(resolve, reject))
      outgoing.on('timeout', () => outgoing.destroy()).on('error', reject)
      outgoing.end()
    })
    return body === null ? null : readBridgeStatus(body)
  } catch {
    return null
  }
}
