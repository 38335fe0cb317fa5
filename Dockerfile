# The broker as an image:    docker build -t penstock .    docker run -p 9092:9092 penstock
#
# Clients outside reach it at localhost:9092. For another name add: -o advertised.listeners=PLAINTEXT://NAME:9092
FROM python:3.13-slim AS wheel
# The kernels are C: without a compiler the wheel would have them as plain Python.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY . /source
RUN PENSTOCK_KERNELS=require pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.13-slim
COPY --from=wheel /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt /wheels/*.whl && rm -r /wheels \
    && useradd --create-home --uid 10001 penstock && install -d -o penstock /data
USER penstock
VOLUME /data
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
    CMD ["penstock", "broker", "list", "--bootstrap-server", "127.0.0.1:9092"]
ENTRYPOINT ["penstock", "broker"]
CMD ["--data-dir", "/data", "--host", "0.0.0.0", "-o", "advertised.listeners=PLAINTEXT://localhost:9092"]
