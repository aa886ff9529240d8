import { createHash, hash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { type Clock, withoutTrailing } from '@plat/core'
import { type AwsCredentials, type Dialer, type Fetched, signAws } from '@plat/http'
import type { Material } from '../material.ts'
import { type Archive, eachPart, PART_BYTES } from './archive.ts'

/** S3 accepts at most this number of parts. */
const MAX_PARTS = 10_000
const MAX_RESPONSE_BYTES = 256 * 1024
const UPLOAD_ID = /<UploadId>([A-Za-z0-9._~+/=-]{1,1024})<\/UploadId>/
const ETAG = /^"?[A-Za-z0-9-]{1,128}"?$/
/** An error code; any other text is not repeated. */
const CODE = /<Code>([A-Za-z0-9]{1,64})<\/Code>/

export interface S3Parts {
  readonly config: {
    /** Bucket and folder: `https://s3.example/bucket/folder`. */
    readonly url: string
    readonly region: string
    readonly jurisdiction: string
    readonly timeoutSeconds: number
  }
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly material: Pick<Material, 'trust'>
  readonly credentials: () => Promise<AwsCredentials>
  readonly clock: Clock
}

interface S3Request {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  /** Default: that of a response without content. */
  readonly maxBytes?: number
}

/** A bucket of Amazon S3 or of a server that speaks its protocol. Files are sent and read back in parts of bounded size. */
export function s3Archive(parts: S3Parts): Archive {
  return {
    async put(path, name) {
      const object = new S3Object(parts, name)
      const { size } = await stat(path)
      const partBytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS))
      const digest = size <= partBytes ? await object.putWhole(path) : await object.putParts(path, partBytes)
      if ((await object.digest(size, partBytes)) !== digest)
        throw new Error(`${object.url}: the copy reads back differently`)
      return object.url.href
    },
  }
}

/** One object of the bucket. */
class S3Object {
  readonly url: URL
  readonly #parts: S3Parts

  constructor(parts: S3Parts, name: string) {
    this.#parts = parts
    this.url = new URL(`${withoutTrailing(parts.config.url, '/')}/${name}`)
  }

  /** Returns the SHA-256 of what was sent. */
  putWhole(path: string): Promise<string> {
    return eachPart(path, PART_BYTES, async (body) => void (await this.#send({ method: 'PUT', body })))
  }

  /** The same in an upload of several parts, which becomes visible as a whole. */
  async putParts(path: string, partBytes: number): Promise<string> {
    const begun = await this.#send({ method: 'POST', query: { uploads: '' } })
    const uploadId = UPLOAD_ID.exec(textOf(begun))?.[1]
    if (uploadId === undefined) throw new Error(`${this.url}: the response to the upload names no UploadId`)
    try {
      const tags: string[] = []
      const digest = await eachPart(path, partBytes, async (body, index) => {
        const query = { partNumber: String(index + 1), uploadId }
        const { headers } = await this.#send({ method: 'PUT', query, body })
        if (headers.etag === undefined || !ETAG.test(headers.etag)) throw new Error(`${this.url}: a part has no ETag`)
        tags.push(headers.etag.replaceAll('"', ''))
      })
      const listed = tags.map((tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>"${tag}"</ETag></Part>`)
      const body = Buffer.from(`<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`)
      const done = await this.#send({ method: 'POST', query: { uploadId }, body })
      // S3 responds with 200 before it knows whether the parts can be joined.
      if (CODE.test(textOf(done))) throw new Error(`${this.url}: ${faultOf(done)}`)
      return digest
    } catch (error) {
      await this.#send({ method: 'DELETE', query: { uploadId } }).catch(() => {})
      throw error
    }
  }

  /** Reads the object back; returns its SHA-256. */
  async digest(size: number, partBytes: number): Promise<string> {
    const digest = createHash('sha256')
    for (let from = 0; from < size; from += partBytes) {
      const to = Math.min(from + partBytes, size)
      const headers = { range: `bytes=${from}-${to - 1}` }
      const { status, bytes } = await this.#send({ method: 'GET', headers, maxBytes: partBytes })
      // A server without ranges sends the whole object, which is the range when there is one part.
      if (bytes.length !== to - from || (status !== 206 && size > partBytes)) {
        throw new Error(`${this.url}: bytes ${from} to ${to} cannot be read back`)
      }
      digest.update(bytes)
    }
    return digest.digest('hex')
  }

  async #send({ method, query = {}, body, headers = {}, maxBytes = MAX_RESPONSE_BYTES }: S3Request): Promise<Fetched> {
    const { config, dialer, material, credentials, clock } = this.#parts
    const url = new URL(this.url)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const content = body ?? Buffer.alloc(0)
    const signed = signAws(
      {
        ...{ method, url, body: content, region: config.region, service: 's3', at: clock.now() },
        headers: { ...headers, 'x-amz-content-sha256': hash('sha256', content, 'hex') },
      },
      await credentials(),
    )
    const fetched = await dialer.fetchBytes(url, 'sink', {
      ...(await material.trust()),
      ...{ method, headers: signed, maxBytes, timeoutMs: config.timeoutSeconds * 1000 },
      ...{ jurisdiction: config.jurisdiction, ...(body !== undefined && { body }) },
    })
    if (fetched.status < 200 || fetched.status > 299) throw new Error(`${this.url}: ${faultOf(fetched)}`)
    return fetched
  }
}

function textOf({ bytes }: Fetched): string {
  return Buffer.from(bytes).toString('latin1')
}

function faultOf(fetched: Fetched): string {
  const code = CODE.exec(textOf(fetched))?.[1]
  return code === undefined ? `status ${fetched.status}` : `status ${fetched.status} (${code})`
}
