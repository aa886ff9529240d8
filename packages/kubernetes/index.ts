export { type Access, type AccessOptions, type Credentials, clusterAccess, fileAccess } from './access.ts'
export {
  type ApiOptions,
  type ApiRequest,
  type ApiResponse,
  KubernetesApi,
  KubernetesApiError,
  type Members,
  retryAfterOf,
} from './api.ts'
export { kubeconfigAccess } from './kubeconfig.ts'
export { type Cause, member, textOf } from './members.ts'
export type { WatchLine } from './watch.ts'
export { readYaml, type YamlProblem, type YamlText } from './yaml/read.ts'
export { writeYaml } from './yaml/write.ts'
