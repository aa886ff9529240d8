import type { Dice } from './dice.ts'
import { CANARY, callOf, type Drawn, headLines, type Kind, written } from './request.ts'

/** One byte more than `maxBodyBytes` of the contract's default. */
const TOO_MANY_BYTES = 4_194_305

/** Deeper than strict JSON goes. */
const TOO_DEEP = 65

/** Bodies that are not strict JSON, or no single message of JSON-RPC 2.0. */
const BROKEN: readonly ((dice: Dice, text: string) => string | Buffer)[] = [
  (dice, text) => text.slice(0, dice.below(text.length - 1) + 1),
  (_, text) => text + text,
  (_, text) => `${text}x`,
  (_, text) => `\ufeff${text}`,
  (_, text) => `[${text}]`,
  (dice, text) => text.replace('"id"', `"${dice.one(['id', 'method', 'jsonrpc', 'params', '\\u0069d'])}":1,"id"`),
  (_, text) => text.replaceAll('"', "'"),
  (_, text) => text.replace('{}', '{"a":1,}'),
  (dice, text) =>
    text.replace('{}', dice.one(['NaN', 'Infinity', '01', '1.', '.5', '+1', '-', '0x1', 'undefined', '// a'])),
  (_, text) => text.replace('{}', `${'['.repeat(TOO_DEEP)}${']'.repeat(TOO_DEEP)}`),
  (dice, text) => {
    const bad = dice.one([[0x80], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82]])
    return Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bad), Buffer.from(`",${text.slice(1)}`)])
  },
  (dice, text) => text.replace('{}', `"${dice.one(['\\x', '\\u12', '\n', '\0', '\\'])}"`),
  (dice) => dice.one(['', ' ', 'null', 'true', '1', '"text"', '[]', '{}', '[[]]', '{"jsonrpc":"2.0"}']),
  (dice, text) => text.replace('"2.0"', dice.one(['"1.0"', '2.0', '2', 'null', '""', '"2.0 "', '["2.0"]'])),
  (dice, text) => text.replace('"id":1', `"id":${dice.one(['null', '{}', '[]', 'true', '[1]'])}`),
  (dice, text) => text.replace('"tools/call"', dice.one(['1', 'null', '{}', '["tools/call"]'])),
  (dice, text) => text.replace(`"name":"${CANARY}"`, `"name":${dice.one(['1', 'null', '{}', '[]'])},"x":"${CANARY}"`),
  (dice, text) => text.replace(/"params":.*$/, `"params":${dice.one(['1', 'null', '[]', '"a"', '{"x":1}'])}}`),
]

/** Methods that a client may not send, or not in this form. */
const FOREIGN_METHODS = [
  'tools/calls',
  'things/list',
  '__proto__',
  'constructor',
  'toString',
  'notifications/unknown',
  'sampling/createMessage',
  'rpc.discover',
  '',
]

/** Headers of MCP that say something which cannot be. */
const MCP_LINES = [
  'Mcp-Session-Id: p1.AAAA',
  'Mcp-Session-Id: \t',
  'Mcp-Session-Id: a, b',
  'Mcp-Protocol-Version: 1999-01-01',
  'Mcp-Protocol-Version: 2026-07-28',
  'Mcp-Protocol-Version: 9999-12-31',
  'Mcp-Protocol-Version: latest',
  'Mcp-Protocol-Version: 2026-07-28, 2025-06-18',
]

/** A call that must be refused with one of `statuses`. */
function call(token: string, body: string | Buffer, statuses: readonly number[], lines = headLines(token)): Drawn {
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  return { bytes: written({ lines: [...lines, length], body }), statuses, answers: 1 }
}

/** The usual head lines with one of them replaced. */
function replaced(token: string, name: string, line: string): string[] {
  return headLines(token).map((usual) => (usual.startsWith(name) ? line : usual))
}

/** Valid HTTP that the protocol above must refuse. */
export const mcpKinds: Readonly<Record<string, Kind>> = {
  json: (dice, token) => call(token, dice.one(BROKEN)(dice, callOf(CANARY)), [400]),
  method: (dice, token) => {
    const body = callOf(CANARY).replace('tools/call', dice.one(FOREIGN_METHODS))
    return call(token, body, [200, 400])
  },
  answer: (dice, token) => {
    const member = dice.one(['"result":{}', '"error":{"code":1,"message":"x"}', '"result":{},"error":{}'])
    return call(token, `{"jsonrpc":"2.0","id":${dice.below(9)},${member}}`, [400, 404])
  },
  mcpHeaders: (dice, token) => call(token, callOf(CANARY), [400, 404], [...headLines(token), dice.one(MCP_LINES)]),
  mirrors: (dice, token) => {
    const meta =
      '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
    const body = callOf(CANARY).replace('"arguments":{}', meta)
    const method = dice.one(['Mcp-Method: tools/list', 'Mcp-Method: ', 'X-None: a', 'Mcp-Method: tools/call, x'])
    const name = dice.one(['Mcp-Name: other', 'Mcp-Name: =?base64?!?=', 'Mcp-Name: =?base64?YQ?=', 'X-None: b'])
    return call(token, body, [400], [...headLines(token), 'Mcp-Protocol-Version: 2026-07-28', method, name])
  },
  media: (dice, token) => {
    const types = ['text/plain', 'application/jsonx', 'application/json/x', 'multipart/form-data', '*/*', '', 'json']
    const lines = dice.chance(70)
      ? replaced(token, 'Content-Type', `Content-Type: ${dice.one(types)}`)
      : [...headLines(token), `Content-Encoding: ${dice.one(['gzip', 'br', 'identity, gzip', 'x'])}`]
    return call(token, callOf(CANARY), [415], lines)
  },
  credential: (dice, token) => {
    const [head = '', claims = '', signature = ''] = token.split('.')
    const wrong = dice.one([
      `Bearer ${head}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
      `Bearer ${head}.${claims}.`,
      `Bearer ${head}.${claims}`,
      `Bearer ${head}..${signature}`,
      `Bearer ${token}.x`,
      `Bearer  ${token} x`,
      `bearer${token}`,
      `Basic ${token}`,
      'Bearer',
      'Bearer \t',
      '',
      `Bearer ${'a'.repeat(dice.below(9000))}`,
      `Bearer ${dice.bytes(40).toString('base64')}`,
    ])
    return call(token, callOf(CANARY), [401], replaced(token, 'Authorization', `Authorization: ${wrong}`))
  },
  tooLarge: (dice, token) => {
    const lines = [...headLines(token), `Content-Length: ${TOO_MANY_BYTES + dice.below(1e9)}`]
    return { bytes: written({ lines, body: callOf(CANARY) }), statuses: [413], answers: 1 }
  },
  verb: (dice, token) => {
    const first = `${dice.one(['PUT', 'PATCH', 'OPTIONS', 'TRACE', 'HEAD', 'PROPFIND', 'QUERY', 'PURGE'])} /mcp/notes HTTP/1.1`
    const length = `Content-Length: ${callOf(CANARY).length}`
    const bytes = written({ first, lines: [...headLines(token), length], body: callOf(CANARY) })
    return { bytes, statuses: [405], answers: 1 }
  },
  session: (dice, token) => {
    const lines = ['Mcp-Session-Id: p1.AAAA', 'Mcp-Protocol-Version: 2026-07-28', 'Mcp-Protocol-Version: x']
    const [method, line] = dice.chance(20)
      ? ['GET', 'Last-Event-ID: x']
      : [dice.one(['GET', 'DELETE']), dice.one(lines)]
    const bytes = written({ first: `${method} /mcp/notes HTTP/1.1`, lines: [...headLines(token), line] })
    return { bytes, statuses: [400, 404, 405], answers: 1 }
  },
  path: (dice, token) => {
    const name = dice.one([
      'nobody',
      '..',
      '%6eotes',
      'notes//',
      'notes/..',
      'notes%00',
      'a'.repeat(64),
      '',
      '.hidden',
      '__proto__',
    ])
    const length = `Content-Length: ${callOf(CANARY).length}`
    const bytes = written({
      first: `POST /mcp/${name} HTTP/1.1`,
      lines: [...headLines(token), length],
      body: callOf(CANARY),
    })
    return { bytes, statuses: [200, 403, 404], answers: 1 }
  },
  elsewhere: (dice, token) => {
    const path = dice.one([
      '/v1/approvals',
      '/v1/revocations',
      '/metrics',
      '/debug/profile',
      '/llm/x/v1/chat/completions',
      '/%ff',
      '//',
      '/a2a/x/y',
    ])
    const body = dice.one(['', '{', callOf(CANARY)])
    const lines = [...headLines(token), `Content-Length: ${body.length}`]
    const bytes = written({ first: `${dice.one(['POST', 'PUT', 'DELETE'])} ${path} HTTP/1.1`, lines, body })
    return { bytes, statuses: [400, 401, 403, 404, 405, 415], answers: 1 }
  },
}
