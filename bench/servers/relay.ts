import { Pool } from 'undici'
import { bodyOf, serve } from './body.ts'

/** The floor: node:http and undici, the JSON body parsed once, nothing governed. The upstream's URL is the one argument. */
const [upstream] = process.argv.slice(2)
if (upstream === undefined) throw new Error('usage: relay.ts <upstream url>')
const pool = new Pool(upstream, { connections: 256, pipelining: 1, allowH2: false })

serve(async (request, response) => {
  const body = await bodyOf(request)
  JSON.parse(body.toString())
  const answer = await pool.request({
    method: 'POST',
    path: '/mcp',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body,
  })
  const bytes = Buffer.from(await answer.body.arrayBuffer())
  response.writeHead(answer.statusCode, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
})
