import { licenseView, type Standing } from '@plat/license'
import type { AdminRoutes } from '../../admin/index.ts'

/** `GET /v1/license`: the state of the license now. */
export function createLicenseRoutes(standing: () => Standing): AdminRoutes {
  return { mount: (context) => context.on('GET /v1/license', async () => licenseView(standing())) }
}
