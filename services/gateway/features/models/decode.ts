import {
  type Decoded,
  decodeRendered,
  type ModelEndpointEntry,
  type ModelRouteEntry,
  type ModelsFile,
  modelsFileSchema,
} from '@plat/resources/rendered'

/** `<ns>.<agent>`, split at the first dot. */
const ROUTE_KEY = /^[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9.-]*$/

/** Decodes a modelsFile strictly; parts that this version does not enforce refuse the file. */
export function decodeModels(bytes: Uint8Array): Decoded<ModelsFile> {
  const decoded = decodeRendered(modelsFileSchema, bytes, unbuiltParts)
  if (!decoded.ok) return decoded
  const problems = Object.entries(decoded.file.models).flatMap(([key, { upstream, fallbacks = [] }]) => [
    ...(ROUTE_KEY.test(key) ? [] : [`models[${key}]: must read <namespace>.<agent>`]),
    ...(URL.canParse(upstream) ? [] : [`models[${key}].upstream: not a URL`]),
    ...fallbacks.flatMap((fallback, index) =>
      URL.canParse(fallback.upstream) ? [] : [`models[${key}].fallbacks[${index}].upstream: not a URL`],
    ),
  ])
  return problems.length > 0 ? { ok: false, problems } : decoded
}

function unbuiltParts({ models }: ModelsFile): string[] {
  return Object.entries(models).flatMap(([key, route]) => unbuiltOf(route).map((part) => `models[${key}].${part}`))
}

function unbuiltOf(route: ModelRouteEntry): string[] {
  const out = unbuiltOfEndpoint(route)
  if ((route.providerTools ?? []).length > 0) out.push('providerTools')
  for (const [index, fallback] of (route.fallbacks ?? []).entries())
    out.push(...unbuiltOfEndpoint(fallback).map((part) => `fallbacks[${index}].${part}`))
  return out
}

function unbuiltOfEndpoint(entry: ModelEndpointEntry): string[] {
  const out: string[] = []
  if ((entry.provider ?? 'openai') !== 'openai') out.push('provider')
  for (const key of ['mode', 'region', 'project', 'apiVersion'] as const) if ((entry[key] ?? '') !== '') out.push(key)
  if ((entry.requestsPerMinute ?? 0) > 0) out.push('requestsPerMinute')
  return out
}
