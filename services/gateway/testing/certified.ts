import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '@plat/core'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'

/** The gateway's certificate for `localhost` as files of block `tls`, and who issues those of callers. */
export async function certified() {
  const now = systemClock.now()
  const dir = tempFolder()
  const server = await createAuthority({ name: 'server', now })
  const clients = await createAuthority({ name: 'clients', now, uris: ['spiffe://plat.local'] })
  const leaf = await server.issue({ name: 'gateway', dnsNames: ['localhost'] })
  const files = {
    certFile: join(dir, 'tls.crt'),
    keyFile: join(dir, 'tls.key'),
    clientCAFile: join(dir, 'clients.pem'),
  }
  await writeFile(files.certFile, leaf.pem)
  await writeFile(files.keyFile, keyOf(leaf))
  await writeFile(files.clientCAFile, clients.pem)
  return { now, server, clients, files }
}

/** The private key, as PEM. */
export function keyOf(issued: Issued): string {
  return String(issued.privateKey.export({ format: 'pem', type: 'pkcs8' }))
}
