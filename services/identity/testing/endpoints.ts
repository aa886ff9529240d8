import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { type Endpoint, RefusalError } from '@plat/http/endpoints'

/** Calls an endpoint without a listener. A refusal is returned as its body with the status. */
export async function ask(
  endpoint: Endpoint,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<object> {
  const request = new IncomingMessage(new Socket())
  request.headers = { 'content-type': 'application/json', ...headers }
  request.headersDistinct = headers.dpop === undefined ? {} : { dpop: [headers.dpop] }
  try {
    return await endpoint.handle(Buffer.from(JSON.stringify(body)), request)
  } catch (error) {
    assert.ok(error instanceof RefusalError, String(error))
    return { status: error.status, ...error.body('') }
  }
}
