// The peer: Portkey's gateway on a free port, its address printed as the harness expects it.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'

const start = createRequire(import.meta.url).resolve('@portkey-ai/gateway/build/start-server.js')
const probe = createServer().listen(0, '127.0.0.1', () => {
  const { port } = probe.address()
  probe.close(() => {
    const env = { ...process.env, TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' }
    const child = spawn(process.execPath, [start, `--port=${port}`, '--headless'], { env, stdio: 'ignore' })
    process.once('SIGTERM', () => child.kill())
    child.once('exit', () => process.exit(0))
    answering(port)
  })
})

async function answering(port) {
  const url = `http://127.0.0.1:${port}`
  while (
    !(await fetch(url).then(
      () => true,
      () => false,
    ))
  )
    await new Promise((resolve) => setTimeout(resolve, 50))
  console.log(JSON.stringify({ url }))
}
