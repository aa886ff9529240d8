import {
  type Decoded,
  decodeRendered,
  lentTokenFault,
  type ModelEndpointEntry,
  type ModelsFile,
  modelsFileSchema,
} from '@plat/resources/rendered'
import { endpointFaults } from './providers.ts'

/** `<ns>.<agent>`, split at the first dot. */
const ROUTE_KEY = /^[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9.-]*$/

/** Decodes a modelsFile strictly; refuses features that this version does not support. */
export function decodeModels(bytes: Uint8Array): Decoded<ModelsFile> {
  const decoded = decodeRendered(modelsFileSchema, bytes, () => [])
  if (!decoded.ok) return decoded
  const problems = Object.entries(decoded.file.models).flatMap(([key, route]) => [
    ...(ROUTE_KEY.test(key) ? [] : [`models[${key}]: must read <namespace>.<agent>`]),
    ...faultsOf(route).map((fault) => `models[${key}].${fault}`),
    ...(route.fallbacks ?? []).flatMap((fallback, index) =>
      faultsOf(fallback).map((fault) => `models[${key}].fallbacks[${index}].${fault}`),
    ),
  ])
  return problems.length > 0 ? { ok: false, problems } : decoded
}

function faultsOf(entry: ModelEndpointEntry): string[] {
  const url = URL.canParse(entry.upstream) ? [] : ['upstream: not a URL']
  // Authors of agents choose the URL of their model; it must not receive the gateway's own tokens.
  const lent = lentTokenFault(entry, entry.upstream)
  return [
    ...url,
    ...(lent === null ? [] : [`upstream: ${lent}`]),
    ...endpointFaults(entry).map(([name, message]) => `${name}: ${message}`),
  ]
}
