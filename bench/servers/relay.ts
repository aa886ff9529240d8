import { Pool } from 'undici'
import { bodyOf, serve } from './body.ts'

/** The floor: node:http and undici, the JSON body parsed once, nothing governed. Arguments: the upstream's origin and path. */
const [upstream, path = '/mcp'] = process.argv.slice(2)
if (upstream === undefined) throw new Error('usage: relay.ts <upstream origin> [path]')
const pool = new Pool(upstream, { connections: 256, pipelining: 1, allowH2: false })

serve(async (request, response) => {
  const body = await bodyOf(request)
  JSON.parse(body.toString())
  const answer = await pool.request({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body,
  })
  const type = String(answer.headers['content-type'])
  if (type.startsWith('text/event-stream')) {
    response.writeHead(answer.statusCode, { 'content-type': type })
    answer.body.pipe(response)
    return
  }
  const bytes = Buffer.from(await answer.body.arrayBuffer())
  response.writeHead(answer.statusCode, { 'content-type': type, 'content-length': bytes.length })
  response.end(bytes)
})
