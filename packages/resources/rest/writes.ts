import { isObject } from '@plat/core'
import { type Kind, kinds, type Manifest, type Resource } from '../kinds/kinds.ts'
import type { Applied, ResourceStore } from '../store/store.ts'
import { isManifest, isStatus, validate, validateStatus } from '../validate.ts'
import { mediaTypeOf, readJson, readSent, readValue, type Sent } from './body.ts'
import { alreadyExists, conflicting, GROUP, invalid, notFound, RestError } from './error.ts'
import { jsonPatch, mergePatch } from './patch.ts'
import { listOf, okResponse, type RestRequest, type RestResponse, wireOf } from './rest.ts'
import type { Target } from './route.ts'
import { fieldSelector, labelSelector } from './selectors.ts'

export interface WriteParts {
  readonly store: ResourceStore
  /** Returns the suffix of a generated name. */
  readonly freshName: () => string
}

const CREATED = 201

/** POST of a collection. */
export async function create(parts: WriteParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const sent = readSent(readValue(request), target, request.query, parts.freshName)
  const manifest = manifestOf(target.kind, sent)
  const dryRun = isDryRun(request)
  const applied = await parts.store.apply(manifest, { owner: ownerOf(request), force: true, create: true, dryRun })
  if (applied.kind === 'conflict') {
    // A file that does not load is not an object, but a client that repairs it does not intend to create another one.
    const held = await parts.store.get(target.kind, manifest.metadata)
    throw held === null ? conflicting(target.kind, sent.name, applied.reason) : alreadyExists(target.kind, sent.name)
  }
  return written(target, request, objectOf(target.kind, sent.name, applied), { status: CREATED, sent })
}

/** PUT of an object. */
export async function replace(parts: WriteParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const sent = readSent(readValue(request), target, request.query, parts.freshName)
  const held = await heldBy(parts, target)
  if (sent.revision === null) {
    const message = 'Invalid value: 0: must be specified for an update'
    throw invalid(target.kind, sent.name, [{ path: 'metadata.resourceVersion', message }])
  }
  expect(target.kind, held, sent)
  return put(parts, target, request, { held, sent })
}

/** Maximum number of attempts to patch an object that changes meanwhile. */
const PATCH_TRIES = 5

/** PATCH of an object. */
export async function patch(parts: WriteParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const change = patching(request)
  for (let left = PATCH_TRIES; ; left -= 1) {
    const held = await heldBy(parts, target)
    const patched = change(wireOf(held))
    const sent = readSent(patched, target, request.query, parts.freshName)
    expect(target.kind, held, sent)
    try {
      return await put(parts, target, request, { held, sent })
    } catch (error) {
      const lost = error instanceof RestError && error.status === 409
      if (!lost || left <= 1) throw error
    }
  }
}

/** Supported patch types; strategic ones need merge rules that only built-in kinds have. */
function patching(request: RestRequest): (object: unknown) => unknown {
  const type = mediaTypeOf(request)
  const value = () => readJson(request.body)
  if (type === 'application/merge-patch+json') {
    const merge = value()
    return (object) => mergePatch(object, merge)
  }
  if (type === 'application/json-patch+json') {
    const operations = value()
    return (object) => jsonPatch(object, operations)
  }
  const hint = type.startsWith('application/apply-patch') ? ': apply without --server-side' : ''
  throw new RestError(
    415,
    `the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json${hint}`,
  )
}

/** Writes an object derived from the current one, or its status; fails when it has changed meanwhile. */
async function put(
  { store }: WriteParts,
  target: Target,
  request: RestRequest,
  { held, sent }: { readonly held: Resource; readonly sent: Sent },
): Promise<RestResponse> {
  const { kind } = target
  const options = { dryRun: isDryRun(request), revision: held.metadata.resourceVersion }
  const applied =
    target.subresource === 'status'
      ? await store.applyStatus(kind, held.metadata, statusOf(kind, sent), options)
      : await store.apply(manifestOf(kind, sent), { owner: ownerOf(request), force: true, ...options })
  if (applied === null) throw notFound(kind, sent.name)
  return written(target, request, objectOf(kind, sent.name, applied), { status: 200, sent })
}

/** DELETE of an object. */
export async function remove({ store }: WriteParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const { kind, namespace } = target
  const name = target.name ?? ''
  const { uid, revision, dryRun } = deletionOf(request)
  const held = await heldBy({ store }, target)
  expect(kind, held, { uid, revision })
  if (!dryRun) {
    const preconditions = { uid: held.metadata.uid, ...(revision !== null && { revision }) }
    const removed = await store.remove(kind, { namespace, name }, preconditions)
    if (removed === 'missing') throw notFound(kind, name)
    if (removed !== 'removed') throw conflicting(kind, name, removed.reason)
  }
  const details = { name, group: GROUP, kind: kinds[kind].plural, uid: held.metadata.uid }
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
  return okResponse(body, { change: dryRun ? null : changeOf(target, request) })
}

/** DELETE of a collection: every object that the selectors match. */
export async function removeAll({ store }: WriteParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const { kind, namespace } = target
  const { query } = request
  const labels = labelSelector(query.get('labelSelector') ?? '')
  const fields = fieldSelector(query.get('fieldSelector') ?? '')
  const { dryRun } = deletionOf(request)
  const page = await store.list(kind, namespace === '' ? {} : { namespace })
  const chosen = page.items.filter((object) => labels(object) && fields(object))
  for (const { metadata } of dryRun ? [] : chosen) await store.remove(kind, metadata, { uid: metadata.uid })
  const body = listOf(kind, chosen, { resourceVersion: page.revision })
  return okResponse(body, { change: dryRun ? null : changeOf(target, request) })
}

async function heldBy({ store }: Pick<WriteParts, 'store'>, { kind, namespace, name }: Target): Promise<Resource> {
  const held = await store.get(kind, { namespace, name: name ?? '' })
  if (held === null) throw notFound(kind, name ?? '')
  return held
}

/** The object that the client read must be the current one. */
function expect(kind: Kind, { metadata }: Resource, { uid, revision }: Pick<Sent, 'uid' | 'revision'>): void {
  if (uid !== null && uid !== metadata.uid) {
    throw conflicting(kind, metadata.name, `the UID in the precondition is ${uid}, that of the object ${metadata.uid}`)
  }
  if (revision !== null && revision !== metadata.resourceVersion) throw modified(kind, metadata.name)
}

function modified(kind: Kind, name: string): RestError {
  const why = 'the object has been modified; please apply your changes to the latest version and try again'
  return conflicting(kind, name, why)
}

function manifestOf(kind: Kind, { object, name }: Sent): Manifest {
  const value: unknown = object
  const problems = validate(kind, value)
  if (problems.length === 0 && isManifest(kind, value)) return value
  throw invalid(kind, name, problems.length > 0 ? problems : [{ path: '', message: 'does not fit its schema' }])
}

function statusOf(kind: Kind, { status = {}, name }: Sent) {
  const problems = validateStatus(kind, status)
  if (problems.length === 0 && isStatus(kind, status)) return status
  throw invalid(kind, name, problems.length > 0 ? problems : [{ path: 'status', message: 'does not fit its schema' }])
}

function objectOf(kind: Kind, name: string, applied: Applied<Kind>): Resource {
  if (applied.kind === 'applied') return applied.object
  throw applied.kind === 'invalid' ? invalid(kind, name, applied.problems) : modified(kind, name)
}

function written(
  target: Target,
  request: RestRequest,
  object: Resource,
  { status, sent }: { readonly status: number; readonly sent: Sent },
): RestResponse {
  const change = isDryRun(request) ? null : changeOf(target, request)
  return okResponse(wireOf(object), { status, warnings: sent.warnings, change })
}

/** Returns the name of a write in the ledger. */
export function changeOf({ kind, name, subresource }: Target, { method }: RestRequest): string {
  const one = name === null ? '' : '/:name'
  return `${method} ${kinds[kind].plural}${one}${subresource === null ? '' : '/status'}`
}

/** Maximum length of an owner's name in characters. */
const OWNER_MAX_CHARS = 128

/** Returns the owner of a write: the client's field manager, such as `kubectl-client-side-apply`, or the caller. */
function ownerOf({ query, caller }: RestRequest): string {
  return (query.get('fieldManager') || caller.name).slice(0, OWNER_MAX_CHARS)
}

function isDryRun({ query }: RestRequest): boolean {
  return dryRunOf(query.getAll('dryRun'))
}

function dryRunOf(values: readonly unknown[]): boolean {
  const other = values.find((value) => value !== 'All' && value !== '')
  if (other === undefined) return values.includes('All')
  throw new RestError(422, `dryRun: Unsupported value: ${JSON.stringify(other)}: supported values: "All"`)
}

/** Parses DeleteOptions, which are optional. */
function deletionOf(request: RestRequest) {
  const value = request.body.length === 0 ? {} : readValue(request)
  if (!isObject(value)) throw new RestError(400, 'the body is not a DeleteOptions')
  const { uid, resourceVersion } = isObject(value.preconditions) ? value.preconditions : {}
  const inBody = Array.isArray(value.dryRun) ? dryRunOf(value.dryRun) : false
  return {
    uid: typeof uid === 'string' ? uid : null,
    revision: typeof resourceVersion === 'string' ? resourceVersion : null,
    dryRun: inBody || isDryRun(request),
  }
}
